#!/usr/bin/env bash
# Table 3: the UCI data sets as they are after preparation: columns, rows of both parts, share of positives.
. "$(dirname "$0")/lib/paper.sh"
begin "$@"

# Facts of a prepared data set, as `npl check' prints them, into a line NAME VALUE for each.
describe() {
    local name=$1_data why=''
    if [ "$setting" = smoke ]; then
        why="not run: real data"
    elif ! have "$1"; then
        why="skipped: no $(file_of "$1"); $(cure_of "$1")"
    fi
    if [ "$dry" = yes ]; then
        say "${why:-npl check configs/$1.toml}"
        return 0
    fi
    rm -f "$runs/$name.why"
    if [ -n "$why" ]; then
        say "$1: $why"
        say "$why" >"$runs/$name.why"
        return 0
    fi
    (cd "$root" && "$NPL" check "configs/$1.toml") | awk '
        / training rows x / { print "n_train", $3; print "d", $7; print "n_test", $9 }
        / 1 in .* (training|test) rows \(/ { gsub(/[()]/, "", $NF); positive += $NF; match($0, /of [0-9]+/); all += substr($0, RSTART + 3, RLENGTH - 3) }
        END { print "positive", 100 * positive / all }' >"$runs/$name.part"
    mv "$runs/$name.part" "$runs/$name.txt"
}

for set in adult polish arcene; do describe "$set"; done
make_table 3
finish
