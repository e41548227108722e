#!/usr/bin/env bash
# Figure 2: posterior marginals of the ten weights of the MNIST mixture by FI-NPL and ADVI. The first of the runs of Table 1.
. "$(dirname "$0")/lib/paper.sh"
begin "$@"
names=(mnist_fi mnist_advi)
make_runs "${names[@]}"
make_figure 2 "${names[@]}" -- --kind marginal --parameters 'pi.*' --xlim=0,0.35
finish
