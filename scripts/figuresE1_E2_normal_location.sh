#!/usr/bin/env bash
# Normal location, y ~ N(1, 1). Figure E.1: NPL posterior for alpha = 1 and n = 0, 1, 5, 10; Figure E.2: for n = 1 and
# alpha = 0.1, 1, 5, 10; the exact conjugate posterior N(sum y/(n + 1), 1/(n + 1)) beside the draws. And the variance of the NPL
# prior (n = 0), which the text gives.
. "$(dirname "$0")/lib/paper.sh"
begin "$@"

# Mean and sd of the conjugate posterior given the data of a run.
exact_posterior() {
    local n
    look_up "$1"
    n=$(value_of data.simulate.normal.n 0)
    if [ "$n" -gt 0 ]; then
        rm -rf "$runs/data_$n"
        (cd "$root" && "$NPL" export "$config" --set "data.simulate.normal.n=$n" --seed "$(value_of seed 100)" --draws 1 \
            --out "$runs/data_$n") >/dev/null
    fi
    if [ "$n" -gt 0 ]; then cat "$runs/data_$n/train.csv"; else echo y; fi |
        awk 'NR > 1 { sum += $1; n++ } END { printf "%.6f,%.6f\n", sum / (n + 1), sqrt(1 / (n + 1)) }'
}

# One panel: its run, title, and the exact posterior.
panel() {
    local figure=$1 part=$2 run=$3 exact=
    if [ "$dry" = no ]; then exact=$(exact_posterior "$run"); fi
    make_figure "${figure}_$part" "$run" -- --kind marginal --parameters theta --normal="$exact" --xlim=-3,3 --ylim=0,1.5 --title "$4"
}

make_table "text E.1"
make_runs normal_a1_n1 normal_a1_n5 normal_a1_n10 normal_a0.1_n1 normal_a5_n1 normal_a10_n1
for n in 0 1 5 10; do panel E.1 "n$n" "normal_a1_n$n" "alpha = 1, n = $n"; done
for alpha in 0.1 1 5 10; do panel E.2 "alpha$alpha" "normal_a${alpha}_n1" "alpha = $alpha, n = 1"; done
finish
