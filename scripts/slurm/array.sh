#!/bin/bash
# A shard of a run as a task of a Slurm array: sbatch --array=1-N scripts/slurm/array.sh CONFIG OUT [options of npl run]
# scripts/slurm/submit.sh sends it, with the join after it.
#
# A task that Slurm sends again (a node was lost, the job was preempted) goes on where it was. One that is out of time, or
# was killed, sends itself again, NPL_RESTARTS times at most (10): more would be a shard that never gets anywhere.
#
#   NPL             the program [npl]
#   NPL_SHARDS      how many shards there are, where the array is not 1-N
#   NPL_TIME_LIMIT  stop by itself after this time, to be done before Slurm's limit
#SBATCH --job-name=npl
#SBATCH --ntasks=1
#SBATCH --requeue
#SBATCH --open-mode=append
#SBATCH --signal=B:USR1@60
set -u

config=$1 out=$2
shift 2
task=${SLURM_ARRAY_JOB_ID}_$SLURM_ARRAY_TASK_ID
restarts=${SLURM_RESTART_COUNT:-0}
[ "$restarts" -eq 0 ] || echo "array: task $task on $(hostname), started again ($restarts)"

# Signals reach the shell alone or all processes, by who sends them: npl hears of them in any case, and hearing twice is
# no harm. Whoever sends SIGTERM (scancel, preemption) has decided what becomes of the task; SIGUSR1 leaves it to us.
ended_by_others=no
trap 'kill -USR1 "$npl" 2>/dev/null' USR1
trap 'ended_by_others=yes; kill -TERM "$npl" 2>/dev/null' TERM

"${NPL:-npl}" run "$config" --out "$out" --shard auto --resume --quiet \
    ${NPL_TIME_LIMIT:+--time-limit "$NPL_TIME_LIMIT"} "$@" &
npl=$!
# A signal ends `wait`, not npl.
while kill -0 "$npl" 2>/dev/null; do wait "$npl"; done
wait "$npl"
code=$?

# 128 + signal: out of time (143), or killed. Other codes are errors, and would be the same again.
if [ "$code" -ge 129 ] && [ "$code" -le 159 ] && [ $ended_by_others = no ] && [ "$restarts" -lt "${NPL_RESTARTS:-10}" ]; then
    echo "array: task $task ended with $code, and is sent again"
    # Ends this task, too.
    scontrol requeue "$task" && sleep 60
fi
exit "$code"
