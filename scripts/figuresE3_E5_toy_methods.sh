#!/usr/bin/env bash
# Figures E.3 to E.5: posterior densities of (pi_1, pi_2), (mu_1, mu_2) and (sigma2_1, sigma2_2) of the separated toy mixture by
# RR-NPL, FI-NPL, NUTS and ADVI. Same runs as Figure 1.
. "$(dirname "$0")/lib/paper.sh"
begin "$@"
toy_runs rr 'fi' nuts advi
make_runs "${toy[@]}"
make_triple E.3 E.4 E.5 "${toy[@]}"
finish
