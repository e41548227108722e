#!/usr/bin/env bash
# Table E.5: mean squared error of logistic regression on held-out data. Same runs as Table 4.
. "$(dirname "$0")/lib/paper.sh"
begin "$@"
make_table E.5
finish
