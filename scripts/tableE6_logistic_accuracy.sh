#!/usr/bin/env bash
# Table E.6: accuracy of logistic regression on held-out data, in per cent. Same runs as Table 4.
. "$(dirname "$0")/lib/paper.sh"
begin "$@"
make_table E.6
finish
