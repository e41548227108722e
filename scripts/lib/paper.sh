# What the scripts of the paper's tables and figures have in common. Sourced by them, never run by itself:
#
#   . "$(dirname "$0")/lib/paper.sh"
#   begin "$@"             options; the program is built unless $NPL names one
#   make_table 4           the runs behind Table 4, then its numbers beside the paper's
#   make_runs NAME...      runs of scripts/paper/runs.txt; finished ones are not made again
#   make_figure, make_panels, make_triple, test_symmetry: lib/figures.sh
# shellcheck shell=bash
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
lib=$root/scripts/lib
paper=$root/scripts/paper
script=$(basename "$0")

setting=full
dry=no
keep=no
out=
failed=0
toy=()

say() { printf '%s\n' "$*"; }
warn() { printf '%s: %s\n' "$script" "$*" >&2; }
die() { warn "$1"; exit "${2:-1}"; }

# The comment at the head of the script, and the options that all of them have.
help() {
    awk 'NR > 1 { if (!/^#/) exit; sub(/^# ?/, ""); print }' "$0"
    cat <<'TEXT'

  --quick      minutes: fewer repeats, short chains
  --smoke      seconds: tiny runs of what needs no real data, to see that the scripts work
  --out DIR    where runs, tables and figures go [default: results/ in the project]
  --keep       keep the draws of all repeats [default: those of the first]
  --dry-run    say what would be run, and stop
  --help       this text

Without --quick or --smoke: the full setting of scripts/paper/runs.txt. What is finished is not made again.
NPL names a built program, NPL_DATA the folder of the data sets, NPL_THREADS the threads to use.
TEXT
}

begin() {
    while [ $# -gt 0 ]; do
        case $1 in
            --quick) setting=quick ;;
            --full) setting=full ;;
            --smoke) setting=smoke ;;
            --keep) keep=yes ;;
            --dry-run) dry=yes ;;
            --out)
                [ $# -gt 1 ] || die "--out needs a folder" 2
                out=$2
                shift
                ;;
            --help | -h)
                help
                exit 0
                ;;
            *) die "unknown option \`$1'; try --help" 2 ;;
        esac
        shift
    done
    command -v python3 >/dev/null || die "python3 is needed for the tables (its standard library is enough)"
    out=${out:-$root/results}
    case $out in /*) ;; *) out=$PWD/$out ;; esac
    # npl is run in the project, where ./data is.
    if [ -n "${NPL_DATA:-}" ]; then
        NPL_DATA=$(cd "$NPL_DATA" 2>/dev/null && pwd) || die "NPL_DATA: no such folder: $NPL_DATA" 2
        export NPL_DATA
    fi
    runs=$out/$setting/runs
    build
    if [ "$dry" = no ]; then mkdir -p "$runs"; fi
}

build() {
    if [ -n "${NPL:-}" ]; then
        NPL=$(command -v "$NPL") || die "NPL names no program" 2
        NPL=$(cd "$(dirname "$NPL")" && pwd)/$(basename "$NPL")
    else
        NPL=${CARGO_TARGET_DIR:-$root/target}/release/npl
        if [ "$dry" = no ]; then cargo build --release --quiet --manifest-path "$root/Cargo.toml"; fi
    fi
    export NPL
    version=$("$NPL" --version 2>/dev/null) || version=
    if [ "$dry$version" = no ]; then die "$NPL --version failed: is it npl?" 2; fi
}

# ------------------------------------------------------------------------------------------------ data

# One file that stands for each data set.
file_of() {
    case $1 in
        toy) echo toy/gmm_toy_sep_train.csv ;;
        adult) echo adult/adult.data ;;
        polish) echo polish/3year.arff ;;
        arcene) echo arcene/arcene_train.data ;;
        mnist) echo mnist/train-images-idx3-ubyte ;;
        mnist-start) echo mnist/advi_init.csv ;;
        genetics) echo genetics/genotypes.csv ;;
    esac
}

# Is the data set where npl looks for it?
have() {
    local file folder
    [ "$1" = - ] && return 0
    file=$(file_of "$1")
    for folder in "${NPL_DATA:-$root/data}" "$root/data" "$root"; do
        if [ -e "$folder/$file" ] || [ -e "$folder/$file.gz" ]; then return 0; fi
    done
    return 1
}

# How to get it.
cure_of() {
    case $1 in
        adult | polish | arcene | mnist) echo "scripts/fetch_data.sh $1" ;;
        *) echo "data/README.md says where it comes from" ;;
    esac
}

# ------------------------------------------------------------------------------------------------ runs

trim() { awk '{ $1 = $1; print }' <<<"$1"; }

# Reads the line of a run into $config, $needs and $settings; fails if it is not made at this setting, and leaves the
# reason in $why.
look_up() {
    local line always smoke quick full one
    line=$(grep -E "^$1[[:blank:]]*\|" "$paper/runs.txt") || die "$paper/runs.txt has no run $1"
    # shellcheck disable=SC2034  # one of the three is ${!setting}
    IFS='|' read -r _ config needs always smoke quick full <<<"$line"
    config=$(trim "$config")
    needs=$(trim "$needs")
    case $config in */*) config=$root/$config ;; *) config=$root/configs/$config.toml ;; esac
    case $(trim "${!setting}") in "no: "*)
        why="not run: $(trim "${!setting#*no: }")"
        return 1
        ;;
    esac
    settings=
    for one in $always ${!setting}; do
        if [ "$one" != - ]; then settings+=${settings:+ }$one; fi
    done
    for one in $needs; do
        if ! have "$one"; then
            why="skipped: no $(file_of "$one"); $(cure_of "$one")"
            return 1
        fi
    done
}

# The last value of KEY among the settings, or what the experiment file says, or a default.
value_of() {
    local value
    value=$(tr ' ' '\n' <<<"$settings" | sed -n "s/^$1=//p" | tail -1)
    if [ -z "$value" ]; then value=$(sed -nE "s/^$1 *= *([^ #]+).*/\1/p" "$config" | head -1); fi
    echo "${value:-$2}"
}

make_runs() {
    local name
    for name in "$@"; do make_run "$name"; done
}

# All repeats of a run, each in a folder of its own: repeat i of seed s is the run with seed s + i - 1.
make_run() {
    local name=$1 first repeats seed
    if ! look_up "$name"; then
        say "$name: $why"
        [ "$dry" = yes ] || say "$why" >"$runs/$name.why"
        return 0
    fi
    first=$(value_of seed 100)
    repeats=$(value_of repeats 1)
    for ((seed = first; seed < first + repeats; seed++)); do
        make_repeat "$name" "$seed" "$((seed == first))" || return 0
    done
    [ "$dry" = yes ] || rm -f "$runs/$name.why"
}

make_repeat() {
    local name=$1 seed=$2 is_first=$3 folder=$runs/$1/$2 key code=0 log
    local -a args=("$config")
    local one changes=
    for one in $settings; do
        case $one in seed=* | repeats=*) continue ;; esac
        args+=(--set "${one//@runs@/$runs}")
        changes+=${changes:+ }$one
    done
    args+=(--set repeats=1 --seed "$seed" --out "$folder")
    if [ -n "${NPL_THREADS:-}" ]; then args+=(--threads "$NPL_THREADS"); fi
    # What makes another run of it: the experiment, its changes, and the version of the program; not how many repeats there are.
    key=$(printf '%s\n' "$version" "$(cksum <"$config")" "$changes" "$seed")
    if [ -e "$folder/manifest.json" ] && [ "$(cat "$folder.key" 2>/dev/null)" = "$key" ]; then
        if [ "$dry" = yes ]; then say "finished: $name, seed $seed"; fi
        return 0
    fi
    if [ "$dry" = yes ]; then
        printf 'npl run'
        printf ' %q' "${args[@]}"
        printf '\n'
        return 0
    fi
    say "running $name, seed $seed${settings:+ ($settings)}"
    rm -f "$folder.key"
    mkdir -p "$runs/$name"
    log=$folder.log
    (cd "$root" && "$NPL" run "${args[@]}" --force) >"$log" 2>&1 || code=$?
    # 3: finished, with more failed draws than the experiment allows; the report counts them.
    if [ "$code" -ge 128 ]; then
        warn "$name: stopped"
        exit "$code"
    elif [ "$code" -ne 0 ] && [ "$code" -ne 3 ]; then
        warn "$name failed (exit $code): $(first_error "$log")"
        say "failed: exit $code, see ${log#"$out"/}" >"$runs/$name.why"
        failed=1
        return 1
    fi
    if [ "$is_first" = 0 ] && [ "$keep" = no ]; then rm -f "$folder"/samples.*; fi
    say "$key" >"$folder.key"
}

# What a log complains of first, warnings aside.
first_error() { grep -v '^warning' "$1" | head -1; }

# The folder of the first repeat of a run, for figures; fails if it has not been made.
first_of() {
    local folder
    look_up "$1" || return 1
    folder=$runs/$1/$(value_of seed 100)
    [ -e "$folder/manifest.json" ] && echo "$folder"
}

# ------------------------------------------------------------------------------------------------ tables

# Table ID: its runs, then results/<setting>/table_ID.csv and .md, and the same on the screen.
make_table() {
    local id=$1 names
    names=$(python3 "$lib/compare.py" runs "$id")
    # shellcheck disable=SC2086  # names of runs have no blanks
    make_runs $names
    [ "$dry" = yes ] || python3 "$lib/compare.py" table "$id" --out "$out" --setting "$setting"
}

finish() { exit "$failed"; }

# shellcheck source=figures.sh
. "$lib/figures.sh"
