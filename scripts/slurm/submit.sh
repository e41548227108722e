#!/bin/bash
# A run as a Slurm array of shards, and the join after it: scripts/slurm/submit.sh CONFIG [options] [-- options of npl run]
#
#   --out DIR          run directory, where all nodes see it [runs/<name of CONFIG>]
#   --minutes M        length of a shard: `npl check` times draws here and says how many that makes [10]
#   --shards N         how many shards, instead; where OUT holds shards already, their number is known
#   --array LIST       only these (3,17-19, as `npl merge` prints what is missing), then the join of all
#   --at-once K        at most K tasks at a time
#   --cpus C           cores of a task [1]
#   --time MINUTES     limit of a task [3 M + 5, at least 10]; one that is not done by then sends itself again
#   --set KEY=VALUE    change of the experiment
#   --data-dir DIR     where data files are
#   --sbatch OPTION    one more option of sbatch, for the array and the join: --sbatch --partition=long
#
# Called again, it goes on: what shards hold is not made again. Prints the numbers of the two jobs.
# $NPL names the program [npl].
set -euo pipefail

die() { printf 'submit: %s\n' "$1" >&2; exit 2; }
[ $# -gt 0 ] || die "usage: submit.sh CONFIG [--out DIR] [--minutes M] [--shards N] [--array LIST] [-- options of npl run]"
config=$1
shift
out=runs/$(basename "$config" .toml) minutes=10 shards= array= at_once= cpus=1 time= sets=() data=() sbatch=()
while [ $# -gt 0 ]; do
    option=$1
    [ "$option" = -- ] && { shift; break; }
    [ $# -ge 2 ] || die "$option: a value is missing"
    case $option in
        --out) out=$2 ;;
        --minutes) minutes=$2 ;;
        --shards) shards=$2 ;;
        --array) array=$2 ;;
        --at-once) at_once=$2 ;;
        --cpus) cpus=$2 ;;
        --time) time=$2 ;;
        --set) sets+=(--set "$2") ;;
        --data-dir) data=(--data-dir "$2") ;;
        --sbatch) sbatch+=("$2") ;;
        *) die "$option: no such option; options of npl run go after --" ;;
    esac
    shift 2
done
[[ $minutes =~ ^[1-9][0-9]*$ ]] || die "--minutes $minutes: must be a whole number of minutes"
[[ $shards =~ ^([1-9][0-9]*)?$ ]] || die "--shards $shards: must be a whole number"
[[ $cpus =~ ^[1-9][0-9]*$ ]] || die "--cpus $cpus: must be a whole number"
[ -n "$time" ] || time=$((3 * minutes + 5 > 10 ? 3 * minutes + 5 : 10))
[[ $time =~ ^[0-9]+$ ]] && [ "$time" -ge 3 ] || die "--time $time: must be a whole number of minutes, at least 3"
here=$(cd "$(dirname "$0")" && pwd)
export NPL=${NPL:-npl}

# How many: said, or found, or reckoned.
there=$(find "$out/.npl-chunks" -maxdepth 1 -name '*-of-*' ! -name 1-of-1 2>/dev/null | sed 's/.*-of-//' | sort -u | head -n 1 || true)
[ -n "$shards" ] || shards=$there
if [ -z "$shards" ]; then
    said=$("$NPL" check "$config" --shard-minutes "$minutes" --threads "$cpus" "${sets[@]}" "${data[@]}")
    shards=$(sed -n 's/^# shards  *\([0-9][0-9]*\) of .*/\1/p' <<<"$said")
    [ -n "$shards" ] || die "how long a draw takes is not known; say with --shards how many there shall be"
    largest=$(scontrol show config | sed -n 's/^MaxArraySize *= *//p')
    if [ -n "$largest" ] && [ "$shards" -ge "$largest" ]; then
        echo "submit: $shards shards of $minutes minutes, but arrays here end at $((largest - 1)): longer shards"
        time=$((time * shards / (largest - 1) + 1)) shards=$((largest - 1))
    fi
fi
[ "$shards" -ge 2 ] || { echo "submit: the whole run takes less than $minutes minutes: npl run will do"; shards=2; }

# npl stops 90 s before Slurm would have it stop, and Slurm tells it 60 s before: one of the two is heard of.
export NPL_SHARDS=$shards NPL_TIME_LIMIT=${NPL_TIME_LIMIT:-$((60 * time - 90))s}
mkdir -p "$out/slurm"
common=(--parsable --time="$time" "${sbatch[@]}")
array_job=$(sbatch "${common[@]}" --array="${array:-1-$shards}${at_once:+%$at_once}" --cpus-per-task="$cpus" \
    --output="$out/slurm/shard-%a.txt" "$here/array.sh" "$config" "$out" "${sets[@]}" "${data[@]}" "$@")
merge_job=$(sbatch "${common[@]}" --dependency="afterok:$array_job" --kill-on-invalid-dep=yes \
    --output="$out/slurm/merge.txt" "$here/merge.sh" "$out" "${data[@]}")
echo "$shards shards: array job $array_job, joined by job $merge_job; what they say is in $out/slurm/"
