#!/usr/bin/env bash
# Table E.3: mean LPPD on the inseparable toy mixture: DP-NPL, MDP-NPL, NUTS, ADVI.
. "$(dirname "$0")/lib/paper.sh"
begin "$@"
make_table E.3
finish
