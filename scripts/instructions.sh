#!/usr/bin/env bash
# Instructions per draw, counted by callgrind: scripts/instructions.sh [toy] [toy-fi] [polish] [path]
# Counts repeat to parts in a thousand whatever else the machine does, so they show a change of speed where seconds
# cannot. They are the difference of two runs with different B on one thread: start-up, reading and what all draws share
# cancel. Valgrind knows AVX2 and no AVX-512, so that is what is counted. Builds npl unless $NPL names one. Takes minutes.
# Data are looked for below $NPL_DATA and ./data; jobs without theirs are skipped.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
if ! command -v valgrind >/dev/null; then
    echo "instructions.sh: valgrind is not installed" >&2
    exit 1
fi
if [ -z "${NPL:-}" ]; then
    cargo build --release --manifest-path "$root/Cargo.toml" >&2
    NPL=${CARGO_TARGET_DIR:-$root/target}/release/npl
fi
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

# instructions B CONFIG [FLAG...]
instructions() {
    local draws=$1 config=$2
    shift 2
    if ! valgrind --tool=callgrind --callgrind-out-file=/dev/null "$NPL" run "$root/configs/$config" --quiet --threads 1 \
        --simd avx2 --out "$folder/run" --force --set sampler.B="$draws" "$@" 2>"$folder/log"; then
        cat "$folder/log" >&2
        exit 1
    fi
    sed -n 's/.*Collected : \([0-9]*\)$/\1/p' "$folder/log"
}

# job NAME DATA FEW MANY CONFIG [FLAG...]
job() {
    local name=$1 data=$2 few=$3 many=$4
    shift 4
    if [ -n "$data" ] && ! [ -e "${NPL_DATA:-data}/$data" ] && ! [ -e "data/$data" ]; then
        echo "skipped: $name: $data is in neither \$NPL_DATA nor ./data" >&2
        return
    fi
    local first second settings=1
    [ "$name" = path ] && settings=2
    first=$(instructions "$few" "$@")
    second=$(instructions "$many" "$@")
    local draws=$(((many - few) * settings))
    awk -v name="$name" -v draws="$draws" -v all=$((second - first)) \
        'BEGIN { printf "| %s | %d | %.3f |\n", name, draws, all / draws / 1e6 }'
}

printf '| job | draws | million instructions a draw |\n|---|---|---|\n'
[ $# -gt 0 ] || set -- toy toy-fi polish path
for name in "$@"; do
    # Logistic draws are made in two lines of sixteen, so B is a multiple of that.
    case $name in
        toy) job toy '' 2 12 gmm_toy.toml ;;
        toy-fi) job toy-fi '' 10 60 gmm_toy_fi.toml ;;
        # A tenth of the rows, none scored: multiply-adds take valgrind hundreds of times as long as they take the CPU.
        polish) job polish polish/3year.arff.gz 32 64 polish.toml \
            --set data.split.test=0.9 --set 'evaluate.metrics=["sparsity"]' ;;
        path) job path genetics/genotypes.csv 64 576 genetics_path.toml \
            --set path.geometric.ratio=0.0108 --set path.geometric.count=2 ;;
        *)
            echo "instructions.sh: no job $name; there are toy, toy-fi, polish and path" >&2
            exit 2
            ;;
    esac
done
