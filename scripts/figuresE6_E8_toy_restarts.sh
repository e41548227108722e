#!/usr/bin/env bash
# Figures E.6 to E.8: posterior densities of (pi_1, pi_2), (mu_1, mu_2) and (sigma2_1, sigma2_2) of the separated toy mixture by
# RR-NPL with R = 1, 2, 5 and 10 restarts.
. "$(dirname "$0")/lib/paper.sh"
begin "$@"
toy_runs rr_R1 rr_R2 rr_R5 rr
make_runs "${toy[@]}"
make_triple E.6 E.7 E.8 "${toy[@]}"
finish
