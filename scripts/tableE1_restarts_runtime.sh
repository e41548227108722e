#!/usr/bin/env bash
# Table E.1: run-time of RR-NPL on the separated toy mixture for R = 1, 2, 5, 10.
. "$(dirname "$0")/lib/paper.sh"
begin "$@"
make_table E.1
finish
