#!/usr/bin/env bash
# Table 4: mean LPPD on held-out data of logistic regression: Adult, Polish, Arcene by loss-NPL, NUTS, ADVI.
. "$(dirname "$0")/lib/paper.sh"
begin "$@"
make_table 4
finish
