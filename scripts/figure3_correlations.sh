#!/usr/bin/env bash
# Figure 3: correlations of the covariates of the genetic data set. The paper's genotypes are private; these are public ones of
# the same shape (data/README.md).
. "$(dirname "$0")/lib/paper.sh"
begin "$@"
make_runs genetics_path
make_figure 3 genetics_path -- --kind correlation
finish
