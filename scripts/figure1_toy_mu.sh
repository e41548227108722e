#!/usr/bin/env bash
# Figure 1: posterior density of (mu_1, mu_2) of the separated toy mixture by RR-NPL, FI-NPL, NUTS and ADVI; and a test of
# the draws of RR-NPL for symmetry about mu_1 = mu_2.
. "$(dirname "$0")/lib/paper.sh"
begin "$@"
toy_runs rr 'fi' nuts advi
make_runs "${toy[@]}"
make_panels 1 "${toy[@]}" -- --kind bivariate --parameters mu.1.1 mu.2.1 --xlim=-2,6 --ylim=-2,6
test_symmetry 1 "${toy[0]}"
finish
