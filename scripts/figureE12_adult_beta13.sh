#!/usr/bin/env bash
# Figure E.12: posterior marginal of beta_13 of Adult by loss-NPL, NUTS and ADVI. The authors' columns are the six numeric
# ones, then dummies: six of workclass, then those of education, whose first level (10th) has none. So beta_13 is
# education = 11th, which npl calls beta.education_11th.
. "$(dirname "$0")/lib/paper.sh"
begin "$@"
names=(adult_npl adult_nuts adult_advi)
make_runs "${names[@]}"
make_figure E.12 "${names[@]}" -- --kind marginal --parameters beta.education_11th --xlim=-1.5,0.5
finish
