#!/bin/bash
# A real Slurm on this machine, with three nodes; runs as arrays of shards on it; faults: scripts/slurm/test_cluster.sh
#
# An array of four tasks of which one is killed, one told that its time is up, and the node of one lost; a path; 30 repeats; an
# array that is cancelled, and submitted again. All are joined by the jobs that follow them, and must be the bytes that one machine
# writes. Needs slurmctld, slurmd and munged (Debian's packages); where CI=true they are installed. Says 'skipped' where there are
# none, and in CI where they do not start.
# $NPL names the program [target/release/npl].
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
NPL=$(realpath "${NPL:-${CARGO_TARGET_DIR:-$root/target}/release/npl}")
export NPL PATH=$PATH:/usr/sbin

have() { for name in "$@"; do command -v "$name" >/dev/null || return 1; done; }
needed=(slurmctld slurmd sbatch munged python3)
if ! have "${needed[@]}" && [ "${CI:-}" = true ] && have apt-get; then
    (export DEBIAN_FRONTEND=noninteractive
    timeout 120 apt-get update -qq
    timeout 240 apt-get install -y -qq --no-install-recommends slurmctld slurmd slurm-client munge) </dev/null >/dev/null 2>&1 || true
fi
skip() { echo "skipped: shards on a Slurm cluster ($1)"; exit 0; }
have "${needed[@]}" || skip "slurmctld, slurmd and munge are not installed and could not be"

cluster=$(mktemp -d)
export SLURM_CONF=$cluster/slurm.conf NPL_TEST_CLUSTER=$cluster
unset "${!SLURM_ARRAY@}" "${!SLURM_JOB@}" NPL_SHARDS NPL_TIME_LIMIT

# ------------------------------------------------------------------------------------------------ the cluster

# Processes of our jobs, by what is in their environment. Some end while they are looked at.
processes() {
    { grep -lzxF "NPL_TEST_CLUSTER=$cluster" /proc/[0-9]*/environ || true; } 2>/dev/null |
        { xargs -r grep -lzxF "$1" || true; } 2>/dev/null | cut -d/ -f3
}

# Those of Slurm that look after these processes: their environment is not ours.
keepers() {
    local pid
    for pid in "$@"; do
        pid=$(sed -n 's/^PPid:\t//p' "/proc/$pid/status" 2>/dev/null || true)
        if [[ $(cat "/proc/$pid/comm" 2>/dev/null) == slurmstepd* ]]; then echo "$pid"; fi
    done
}

# Whatever was started here, daemons and tasks, ends with the test.
stop() {
    code=$?
    trap - EXIT
    [ $code -eq 0 ] || tail -n 30 "$cluster"/*d.log "$cluster"/*/slurm/*.txt >&2 || true
    mine=$(processes "NPL_TEST_CLUSTER=$cluster")
    # shellcheck disable=SC2046,SC2086
    kill -9 $(keepers $mine) $mine 2>/dev/null || true
    rm -rf "$cluster"
    exit $code
}
trap stop EXIT
trap 'exit 143' TERM INT

free_ports() {
    python3 -c 'import socket
found = [socket.socket() for _ in range(4)]
[s.bind(("", 0)) for s in found]
print(*(s.getsockname()[1] for s in found))'
}

start() {
    read -r controller port1 port2 port3 < <(free_ports)
    local node=0 port
    # Jobs that are sent again wait until their credentials have expired; a node that says nothing for ten seconds is lost, until
    # it says something again.
    cat >"$SLURM_CONF" <<CONF
ClusterName=npl
SlurmctldHost=localhost
SlurmctldPort=$controller
SlurmUser=$(id -un)
SlurmdUser=$(id -un)
AuthType=auth/munge
AuthInfo=socket=$cluster/munge.socket,cred_expire=5
CredType=cred/munge
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SlurmdParameters=config_overrides
SchedulerParameters=sched_interval=2,batch_sched_delay=0,bf_interval=2,sched_min_interval=0
MailProg=/bin/true
MpiDefault=none
SlurmdTimeout=10
ReturnToService=1
KillWait=5
StateSaveLocation=$cluster/state
SlurmdSpoolDir=$cluster/spool.%n
SlurmctldPidFile=$cluster/slurmctld.pid
SlurmdPidFile=$cluster/slurmd.%n.pid
SlurmctldLogFile=$cluster/slurmctld.log
SlurmdLogFile=$cluster/slurmd.%n.log
PartitionName=all Nodes=ALL Default=YES MaxTime=60 State=UP
CONF
    for port in "$port1" "$port2" "$port3"; do
        node=$((node + 1))
        mkdir -p "$cluster/spool.n$node"
        echo "NodeName=n$node NodeHostname=localhost NodeAddr=127.0.0.1 Port=$port CPUs=1 RealMemory=500" >>"$SLURM_CONF"
    done
    mkdir -p "$cluster/state"
    (umask 077 && head -c 128 /dev/urandom >"$cluster/munge.key")
    munged --foreground --force --key-file="$cluster/munge.key" --socket="$cluster/munge.socket" \
        --pid-file="$cluster/munged.pid" --seed-file="$cluster/munged.seed" --log-file="$cluster/munged.log" \
        >"$cluster/munged.out.log" 2>&1 &
    disown
    until_true 30 test -S "$cluster/munge.socket" || return 1
    slurmctld -D -i >"$cluster/slurmctld.out.log" 2>&1 &
    disown
    for node in 1 2 3; do
        slurmd -D -N "n$node" >"$cluster/slurmd.n$node.out.log" 2>&1 &
        slurmd[node]=$!
        # Nobody need be told that it was killed.
        disown
    done
    until_true 120 all_idle
}
slurmd=()

# Waits for a command to succeed, for so many seconds at most.
until_true() {
    local end=$((SECONDS + $1))
    shift
    until "$@"; do
        [ $SECONDS -lt $end ] || { echo "test_cluster: it never came to: $*" >&2; return 1; }
        sleep 0.1
    done
}

all_idle() { [ "$(sinfo --noheader --Node --format=%t 2>/dev/null | grep -c idle)" = 3 ]; }
has_parts() { [ -n "$(find "$cluster/$1/.npl-chunks/$2-of-$3" -name '*.part' 2>/dev/null)" ]; }
is_gone() { [ -z "$(squeue --noheader --job="$1" 2>/dev/null)" ]; }
is_joined() { [ -e "$cluster/$1/manifest.json" ]; }
joined() {
    until_true "$2" is_joined "$1"
    python3 "$root/scripts/lib/same_run.py" "$cluster/$1" "$cluster/$1.whole"
}
said() { grep -q "$2" "$cluster/$1" || { echo "test_cluster: $1 does not say '$2'" >&2; return 1; }; }

# ------------------------------------------------------------------------------------------------ the faults

node_of() { squeue --noheader --array --job="$1" --states=running --format=%N; }

# A signal to the npl of a task, which must be there.
signal_task() {
    local pid found=
    for pid in $(processes "SLURM_ARRAY_TASK_ID=$2"); do
        if [ "/proc/$pid/exe" -ef "$NPL" ] && kill "-$1" "$pid"; then found=yes; fi
    done
    [ -n "$found" ] || { echo "test_cluster: task $2 has no npl to be sent $1" >&2; return 1; }
}

# All that runs on a node dies, daemons first: nobody is left to say so.
lose_node() {
    local mine
    mine=$(processes "SLURMD_NODENAME=$1")
    # shellcheck disable=SC2046,SC2086
    kill -9 "${slurmd[${1#n}]}" $(keepers $mine) $mine 2>/dev/null || true
}

# ------------------------------------------------------------------------------------------------ the test

begun=$SECONDS
if ! start; then
    # What a machine forbids (networks, users) is no fault of ours; where Slurm is at home, it must start.
    tail -n 5 "$cluster"/*.log >&2 || true
    [ "${CI:-}" != true ] || skip "its daemons do not start here"
    exit 1
fi
echo "cluster of $(sinfo --noheader --Node | wc -l) nodes, Slurm $(sinfo --version | sed 's/.* //'): $((SECONDS - begun)) s"
cd "$cluster"

submit() { "$root/scripts/slurm/submit.sh" "$root/configs/gmm_toy.toml" "$@" | tee -a submitted.log; }
whole() { "$NPL" run "$root/configs/gmm_toy.toml" --out "$1.whole" --quiet --threads 1 "${@:2}"; }
submitted() { sed -n 's/.*array job \([0-9]*\).*/\1/p' submitted.log | tail -n 1; }

toy=(--set sampler.B=6000)
whole draws "${toy[@]}"
submit --out draws --shards 4 --time 5 "${toy[@]}" -- --keep-every 0.1
job=$(submitted)
# Held in the middle, so that none is done before its fault comes, however slow this script is at the moment.
for task in 1 2 3; do
    until_true 120 has_parts draws $task 4
    signal_task STOP $task
done
# As if memory had run out; the task sends itself again.
signal_task KILL 1
scancel --batch --signal=USR1 "${job}_2"
signal_task CONT 2
lost=$(node_of "${job}_3")
lose_node "$lost"

repeats=(--set repeats=30 --set sampler.B=40 --set sampler.R=2)
whole repeats "${repeats[@]}"
submit --out repeats --minutes 1 "${repeats[@]}"
floors='{ parameter = "model.gmm.variance_floor", geometric = { first = 1e-6, ratio = 3.0, count = 10 }, keep = ["mu.1.1"] }'
path=(--set "path=$floors" --set sampler.B=100 --set sampler.R=2)
whole path "${path[@]}"
submit --out path --shards 5 --at-once 2 "${path[@]}"

joined draws 300
said draws/slurm/shard-1.txt 'ended with 137, and is sent again'
said draws/slurm/shard-2.txt 'ended with 143, and is sent again'
said draws/slurm/shard-3.txt 'started again (1)'
sinfo --noheader --Node --nodes="$lost" --format=%t | grep -q down || { echo "test_cluster: $lost is not down" >&2; exit 1; }
echo "4 shards, one killed, one out of time, the node of one lost: the bytes of one machine"
joined repeats 300
echo "30 repeats in 2 shards: the bytes of one machine"
joined path 300
echo "a path in 5 shards, two at a time: the bytes of one machine"

toy=(--set sampler.B=3000)
whole cancelled "${toy[@]}"
submit --out cancelled --shards 2 "${toy[@]}" -- --keep-every 0.1
until_true 120 has_parts cancelled 1 2
scancel "$(submitted)"
until_true 120 is_gone "$(submitted)"
! is_joined cancelled && ! grep -q 'sent again' cancelled/slurm/*.txt || { echo "test_cluster: it was not cancelled" >&2; exit 1; }
submit --out cancelled "${toy[@]}"
joined cancelled 300
echo "cancelled and submitted again: the bytes of one machine"
echo "done in $((SECONDS - begun)) s"
