#!/usr/bin/env bash
# The sparsity path of section 3.3. Figure 4: medians of the non-zero coefficients with 80 % intervals; Figure 5: the marginal
# of beta_14 along the path; Figure E.13: absolute medians of all coefficients. And its run-time, which the text gives.
. "$(dirname "$0")/lib/paper.sh"
begin "$@"
make_table "text 3.3"
nonzero=(beta.snp10 beta.snp14 beta.snp24 beta.snp31 beta.snp37)
make_figure 4 genetics_path -- --kind path --parameters "${nonzero[@]}"
# The authors' surface is that of t = 81 to 340, and of beta_14 from -0.1 to 1.
make_figure 5 genetics_path -- --kind surface --parameters beta.snp14 --xlim=-6.85,-1.62 --ylim=-0.1,1
make_figure E.13 genetics_path -- --kind path --absolute --parameters "${nonzero[@]}"
finish
