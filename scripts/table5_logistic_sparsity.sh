#!/usr/bin/env bash
# Table 5: share of posterior means of coefficients below epsilon. Same runs as Table 4.
. "$(dirname "$0")/lib/paper.sh"
begin "$@"
make_table 5
finish
