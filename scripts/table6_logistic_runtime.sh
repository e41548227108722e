#!/usr/bin/env bash
# Table 6: run-times of logistic regression for 2000 draws. Same runs as Table 4.
. "$(dirname "$0")/lib/paper.sh"
begin "$@"
make_table 6
finish
