#!/usr/bin/env bash
# Table E.2: importance sampling beside RR-NPL on the paper's own toy data: LPPD, its SE, ESS, time.
. "$(dirname "$0")/lib/paper.sh"
begin "$@"
make_table E.2
finish
