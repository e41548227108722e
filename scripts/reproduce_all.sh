#!/usr/bin/env bash
# All tables and figures of the paper, and one summary: results/summary.md and .csv (scripts/README.md says what makes what).
# With --docs also puts the tables and pictures of this setting into docs/reproduction.md. Ends with 1 if a run failed; what
# differs from the paper or could not be run is in the summary and is no failure.
. "$(dirname "$0")/lib/paper.sh"

docs=no
args=()
for arg in "$@"; do
    if [ "$arg" = --docs ]; then docs=yes; else args+=("$arg"); fi
done
begin ${args[@]+"${args[@]}"}

started=$SECONDS
# NPL before what it is compared with, so that a full setting that is stopped has the columns that matter; each table and figure
# then finds its runs.
if [ "$dry" = no ]; then
    order=$(awk -F'|' '!/^#/ && NF { late = /method=|@runs@/; gsub(/ /, "", $1); print late, NR, $1 }' "$paper/runs.txt" | sort -n -k1,1 -k2,2)
    # shellcheck disable=SC2046  # names of runs have no blanks
    make_runs $(awk '{ print $3 }' <<<"$order")
fi
for one in "$root"/scripts/table*.sh "$root"/scripts/figure*.sh; do
    before=$SECONDS
    say "== $(basename "$one")"
    code=0
    "$BASH" "$one" ${args[@]+"${args[@]}"} || code=$?
    if [ "$code" -ge 128 ]; then exit "$code"; fi
    if [ "$code" -ne 0 ]; then
        warn "$(basename "$one") ended with $code"
        failed=1
    fi
    [ "$dry" = yes ] || say "-- $((SECONDS - before)) s"
done
[ "$dry" = no ] || exit 0

python3 "$lib/compare.py" summary --out "$out" --setting "$setting"
say "$((SECONDS - started)) s in all; $out/summary.md"
if [ "$docs" = yes ]; then python3 "$lib/update_docs.py" --out "$out" --setting "$setting"; fi
finish
