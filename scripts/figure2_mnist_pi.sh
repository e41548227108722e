#!/usr/bin/env bash
# Figure 2: posterior marginals of the ten weights of the MNIST mixture by ADVI, and by FI-NPL started from that fit.
. "$(dirname "$0")/lib/paper.sh"
begin "$@"
make_runs mnist_advi mnist_fi_advi
make_figure 2 mnist_fi_advi mnist_advi -- --kind marginal --parameters 'pi.*' --xlim=0,0.45
finish
