#!/usr/bin/env bash
# Table 1: mean LPPD on held-out data of the mixtures: toy (RR-NPL, FI-NPL, NUTS, ADVI) and MNIST (FI-NPL, ADVI).
. "$(dirname "$0")/lib/paper.sh"
begin "$@"
make_table 1
finish
