#!/usr/bin/env bash
# Table 2: run-times of the mixtures for 2000 draws. Same runs as Table 1.
. "$(dirname "$0")/lib/paper.sh"
begin "$@"
make_table 2
finish
