#!/usr/bin/env bash
# Figures E.9 to E.11: posterior densities of (pi_1, pi_2), (mu_1, mu_2) and (sigma2_1, sigma2_2) of the inseparable toy mixture
# by DP-NPL, MDP-NPL, NUTS and ADVI. The first of the runs of Table E.3.
. "$(dirname "$0")/lib/paper.sh"
begin "$@"
names=(insep_dp insep_mdp insep_nuts insep_advi)
make_runs "${names[@]}"
make_triple E.9 E.10 E.11 "${names[@]}"
finish
