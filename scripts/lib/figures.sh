# Figures of the paper, by `npl plot' from the runs of scripts/paper/runs.txt; sourced by paper.sh.
# shellcheck shell=bash disable=SC2034,SC2154  # its variables are those of paper.sh

# make_figure ID RUN... -- OPTIONS...: the first repeats of the runs in one picture by `npl plot', results/<setting>/figure_ID.svg
# and .png. If a run is missing there is figure_ID.why instead, which says why.
make_figure() {
    local id=$1 base=$out/$setting/figure_$1
    local -a folders=() labels=()
    shift
    while [ "$1" != -- ]; do
        find_run "$id" "$1" || return 0
        folders+=("$folder")
        labels+=(--label "$(label_of "$1")")
        shift
    done
    shift
    plot "$base" "${folders[@]}" "${labels[@]}" "$@"
}

# make_panels ID RUN... -- OPTIONS...: a picture for each run, figure_ID_RUN.svg and .png, with the method as its title. Their order is
# in figure_ID.panels.
make_panels() {
    local id=$1 name
    local -a names=()
    shift
    while [ "$1" != -- ]; do
        names+=("$1")
        shift
    done
    shift
    if [ "$dry" = no ]; then printf "figure_${id}_%s\n" "${names[@]}" >"$out/$setting/figure_$id.panels"; fi
    for name in "${names[@]}"; do
        find_run "$id" "$name" || return 0
        plot "$out/$setting/figure_${id}_$name" "$folder" --title "$(label_of "$name")" "$@"
    done
}

# The folder of the first repeat of RUN, for figure ID, into $folder; if there is none, the reason into figure_ID.why.
find_run() {
    if [ "$dry" = yes ]; then
        folder=$runs/$2
    elif folder=$(first_of "$2"); then
        rm -f "$out/$setting/figure_$1.why"
    else
        rm -f "$out/$setting/figure_$1".svg "$out/$setting/figure_$1".png
        say "figure $1: $(cat "$runs/$2.why" 2>/dev/null || echo "$2 has not been run")"
        { cat "$runs/$2.why" 2>/dev/null || say "not made: $2 has not been run"; } >"$out/$setting/figure_$1.why"
        return 1
    fi
}

# What the paper calls the method of a run.
label_of() {
    look_up "$1" || true
    case $1 in
        *_rr | *_rr_R*) echo "RR-NPL, R = $(value_of sampler.R 10)" ;;
        *_fi | *_fi_advi) echo "FI-NPL" ;;
        *_dp) echo "DP-NPL, α = 10" ;;
        *_mdp) echo "MDP-NPL, α = 1000" ;;
        *_nuts) echo "NUTS" ;;
        *_advi) echo "ADVI" ;;
        *_npl) echo "loss-NPL" ;;
        *) echo "NPL" ;;
    esac
}

# plot BASE ARGS...: BASE.svg and BASE.png by `npl plot ARGS'.
plot() {
    local base=$1 kind
    shift
    if [ "$dry" = yes ]; then
        printf 'npl plot'
        printf ' %q' "$@" --out "$base.svg"
        printf '\n'
        return 0
    fi
    rm -f "$base.why"
    for kind in svg png; do
        if ! "$NPL" plot "$@" --out "$base.$kind" >"$base.log" 2>&1; then
            say "failed: $(first_error "$base.log")" >"$base.why"
            warn "$(basename "$base"): $(first_error "$base.log")"
            failed=1
            return 0
        fi
    done
    rm -f "$base.log"
    say "figure $base.svg"
}

# toy_runs rr fi ...: those runs on the paper's own toy data if they are here, on simulated data if not; into $toy.
toy_runs() {
    local prefix=fixed
    if ! have toy; then
        prefix=toy
        say "toy data: simulated, as $(file_of toy) is not here; $(cure_of toy)"
    fi
    # shellcheck disable=SC2034  # the figure scripts read it
    toy=("${@/#/${prefix}_}")
}

# make_triple A B C RUN...: figure A of (pi_1, pi_2), B of (mu_1, mu_2), C of (sigma2_1, sigma2_2), a panel for each run.
make_triple() {
    local a=$1 b=$2 c=$3
    shift 3
    make_panels "$a" "$@" -- --kind bivariate --parameters pi.1 pi.2 --xlim=0,1 --ylim=0,1
    make_panels "$b" "$@" -- --kind bivariate --parameters mu.1.1 mu.2.1 --xlim=-2,6 --ylim=-2,6
    make_panels "$c" "$@" -- --kind bivariate --parameters sigma2.1.1 sigma2.2.1 --xlim=0,2 --ylim=0,2
}

# test_symmetry ID RUN: Bowker's test on the draws of (mu_1, mu_2), into results/<setting>/figure_ID_symmetry.csv.
test_symmetry() {
    local folder table=$out/$setting/figure_$1_symmetry.csv
    if [ "$dry" = yes ] || ! folder=$(first_of "$2"); then return 0; fi
    python3 "$lib/symmetry.py" "$folder" >"$table"
    say "symmetry of (mu_1, mu_2): $(awk -F, 'NR == 2 { print $6 ", p = " $5 ", " $2 " draws" }' "$table")"
    if grep -q 'not symmetric' "$table"; then failed=1; fi
}
