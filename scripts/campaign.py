#!/usr/bin/env python3
"""Bad inputs and faults, a few thousand of them, against the program; what may happen is in `judge`.

    scripts/campaign.py             everything
    scripts/campaign.py --quick     a share of every class, for a minute
    scripts/campaign.py --only hard settings

Models and their settings are asked of the program (`npl new`), so that one that is added is tried too. Only the standard library is
needed; prlimit and strace are used where they are. Exits with 1 if anything is against the rules, and prints what.
"""

import argparse
import gzip
import math
import os
import random
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
# Processor time, which others on the machine do not change; and a wall clock far beyond it.
CPU_LIMIT, WALL_LIMIT = 10.0, 300.0
RESULTS = {"manifest.json", "config.toml", "report.json", "report.csv", "summary.csv", "samples.csv", "restarts.csv"}


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--npl", default=os.path.join(ROOT, "target", "release", "npl"), help="the program")
    parser.add_argument("--quick", action="store_true", help="every tenth case")
    parser.add_argument("--only", nargs="+", choices=sorted(CLASSES), help="these classes only")
    parser.add_argument("--seed", type=int, default=1, help="of the changes that are made at random")
    parser.add_argument("--keep", help="where what went wrong is kept")
    return parser.parse_args()


class Campaign:
    def __init__(self, args, folder):
        self.args, self.folder, self.random = args, folder, random.Random(args.seed)
        self.npl = os.path.abspath(args.npl)
        self.count, self.skipped, self.faults, self.codes = 0, 0, [], {}
        self.number = 0

    def write(self, name, content):
        path = os.path.join(self.folder, name)
        with open(path, "wb") as file:
            file.write(content if isinstance(content, bytes) else content.encode())
        return path

    def due(self):
        """Whether the next case is among those that are tried."""
        self.number += 1
        due = not self.args.quick or self.number % 10 == 1
        self.skipped += not due
        return due

    def run(self, *args, before=(), env=None):
        """Exit code, standard output and error, processor seconds."""
        out = os.path.join(self.folder, "out.txt")
        err = os.path.join(self.folder, "err.txt")
        environment = {k: v for k, v in os.environ.items() if k not in ("NPL_DATA", "RUST_BACKTRACE")}
        environment.update(env or {})
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        with open(out, "wb") as stdout, open(err, "wb") as stderr:
            process = subprocess.Popen([*before, self.npl, *args], cwd=self.folder, stdin=subprocess.DEVNULL, stdout=stdout,
                                       stderr=stderr, env=environment)
            try:
                code = process.wait(WALL_LIMIT)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
                code = "hang"
        now = resource.getrusage(resource.RUSAGE_CHILDREN)
        seconds = now.ru_utime + now.ru_stime - used.ru_utime - used.ru_stime
        read = lambda path: open(path, "rb").read().decode(errors="replace")
        return code, read(out), read(err), seconds

    def judge(self, case, outcome, names=(), codes=(0, 1, 2, 3), out="out"):
        """The rules: known exit code, no panic, no abort, no hang, a message that names file or key, nothing half written, and
        no NaN among the answers."""
        code, stdout, stderr, seconds = outcome
        self.count += 1
        self.codes[code] = self.codes.get(code, 0) + 1
        wrong = []
        if code not in codes:
            wrong.append(f"exit code {code}")
        if seconds > CPU_LIMIT:
            wrong.append(f"{seconds:.1f} s of processor time")
        if "panicked" in stderr or "stack overflow" in stderr:
            wrong.append("panic")
        if re.search(r"[\x00-\x08\x0b-\x1f\x7f\x9b]", stdout + stderr):
            wrong.append("control characters")
        if code in (1, 2, 3):
            said = stderr.strip()
            if not any(name in said for name in names) and not re.search(r"`[A-Za-z_.]+`|sampler\.|model\.|data\.|prior\.", said):
                wrong.append(f"names neither file nor key: {said[:300]}")
            if re.search(r"[0-9]{60}", said):
                wrong.append(f"a number of many digits: {said[:200]}")
        wrong += self.look(os.path.join(self.folder, out), code)
        if wrong:
            self.faults.append((case, wrong, stderr[:600]))
            print(f"FAULT {case}: {'; '.join(wrong)}", flush=True)
            self.save(case)

    def look(self, out, code):
        """What is wrong with the results in a folder."""
        if not os.path.isdir(out):
            return ["no results"] if code == 0 and self.expects_results else []
        # Results on their way from there to their names are whole.
        if ".npl-swap" in os.listdir(out):
            return []
        files = {name for name in os.listdir(out) if not name.startswith(".")}
        wrong = []
        if files and "manifest.json" not in files:
            wrong.append(f"partial results: {sorted(files)}")
        # A fault after the last rename leaves results that are whole.
        if code == 2 and files:
            wrong.append(f"exit code {code} and results: {sorted(files)}")
        for name in sorted(files & {"samples.csv", "summary.csv"}):
            with open(os.path.join(out, name)) as file:
                lines = [line.rstrip("\n").split(",") for line in file]
            header = lines[0]
            for line in lines[1:]:
                if name == "samples.csv" and line[header.index("status__")] in ("3", "4", "6"):
                    continue
                numbers = line[1:] if name == "summary.csv" else line[9:]
                if code == 0 and any(cell.lower() in ("nan", "inf", "-inf", "-nan") for cell in numbers):
                    wrong.append(f"exit 0 and {name}: {','.join(line)[:200]}")
                    break
                if name == "samples.csv" and any(h.startswith("pi.") and float(c) < 0 for h, c in zip(header, line)):
                    wrong.append(f"a negative weight of a component: {','.join(line)[:200]}")
                    break
        return wrong

    expects_results = False

    def save(self, case):
        if self.args.keep:
            place = os.path.join(self.args.keep, re.sub(r"[^A-Za-z0-9_.=-]+", "_", case)[:120])
            shutil.rmtree(place, ignore_errors=True)
            shutil.copytree(self.folder, place)

    def try_run(self, case, names, *more, **options):
        shutil.rmtree(os.path.join(self.folder, "out"), ignore_errors=True)
        self.judge(case, self.run("run", "e.toml", "--out", "out", *more, **options), names=names)

    # The registry: its models, and an experiment on d.csv for each.

    def starters(self):
        said = self.run("new", "?")[2]
        names = re.sub(r".*There are ", "", said.strip(), flags=re.S).rstrip(".").split(", ")
        return {name: self.run("new", name)[1] for name in names}

    def experiments(self):
        """Model, experiment on d.csv, and which columns besides covariates it wants."""
        for name, starter in self.starters().items():
            keys = [key for key in ("target", "event") if re.search(rf"^# {key} = ", starter, re.M)]
            data = "".join(f'{key} = "{key}"\n' for key in keys)
            tables = starter[re.search(r"^\[model", starter, re.M).start():]
            tables = re.sub(r"^B = .*$", "B = 10", tables, flags=re.M)
            yield name, f'name = "f"\nseed = 1\n\n[data]\ntrain = "d.csv"\n{data}\n{tables}', keys


def table(columns):
    names = list(columns)
    rows = zip(*columns.values())
    return ",".join(names) + "\n" + "".join(",".join(f"{v!r}" if isinstance(v, float) else str(v) for v in row) + "\n" for row in rows)


def shapes(rng):
    """Covariates that are hard, at scale 1."""
    normal = lambda n: [rng.gauss(0, 1) for _ in range(n)]
    a, b = normal(30), normal(30)
    yield "two columns", [a, b]
    yield "one column", [a]
    yield "a constant column", [a, [1.0] * 30]
    yield "all columns constant", [[2.0] * 30, [1.0] * 30]
    yield "duplicate columns", [a, a]
    yield "nearly duplicate columns", [a, [x * (1 + 1e-14) for x in a]]
    yield "opposite columns", [a, [-x for x in a]]
    yield "one row", [[0.7], [0.2]]
    yield "two rows", [normal(2), normal(2)]
    yield "two equal rows", [[1.5, 1.5], [0.5, 0.5]]
    yield "more columns than rows", [normal(4) for _ in range(9)]
    yield "one outlier", [a[:29] + [1e9], b]
    yield "zeros", [[0.0] * 30, [0.0] * 30]
    yield "a column of a single one", [[0.0] * 29 + [1.0], b]
    yield "far from zero", [[1e15 + x for x in a], b]


def responses(rng, columns, shape):
    n = len(columns[0])
    x = columns[0]
    yield "coins", [rng.randrange(2) for _ in range(n)]
    if shape in ("two columns", "one column", "one row", "two rows"):
        yield "separable", [int(v > 0) for v in x]
        yield "zeros", [0] * n
        yield "ones", [1] * n
        yield "counts", [rng.randrange(50) for _ in range(n)]
        yield "large", [float(rng.randrange(1, 9)) * 1e300 for _ in range(n)]
        yield "small", [float(rng.randrange(1, 9)) * 1e-300 for _ in range(n)]
        yield "negative", [-1.5] * n


SCALES = [1.0, 1e-300, 1e-200, 1e-150, 1e-100, 1e-20, 1e20, 1e100, 1e150, 1e154, 1e200, 1e300]


def hard(campaign):
    """Hard numbers for every model."""
    for model, text, keys in list(campaign.experiments()):
        rng = random.Random(1)
        for shape, columns in shapes(rng):
            answers = list(responses(rng, columns, shape)) if keys else [("", None)]
            for (answer, y), scale in ((a, s) for a in answers for s in SCALES):
                if keys and answer != "coins" and scale not in (1.0, 1e-150, 1e100):
                    continue
                if not campaign.due():
                    continue
                data = {f"x{j}": [v * scale for v in column] for j, column in enumerate(columns)}
                if any(math.isinf(v) for column in data.values() for v in column):
                    continue
                if "target" in keys:
                    data["target"] = y
                if "event" in keys:
                    data["event"] = [1] * len(columns[0])
                campaign.write("d.csv", table(data))
                campaign.write("e.toml", text)
                campaign.try_run(f"{model}, {shape}, {answer} x {scale:g}", ("d.csv", "e.toml"))
                if campaign.number % 7 == 0:
                    more = ["--set", "data.standardise=\"all\"", "--set", "data.constant=\"zero\""]
                    campaign.try_run(f"{model}, {shape}, {answer} x {scale:g}, standardised", ("d.csv", "e.toml"), *more)


VALUES = ["-1", "0", "1", "2", "0.5", "1e-300", "1e300", "-1e300", "nan", "inf", "-inf", "9223372036854775807", "1000000000000",
          "\"\"", "\"x\"", "[]", "{}", "true", "1979-05-27", "[1, 2]", "[0.0]", "[1e300, 1e300]", "\"\\u001b[2J\""]


def settings(campaign):
    """Extreme and absurd values of every key of every starter."""
    for model, starter in campaign.starters().items():
        starter = re.sub(r"^B = .*$", "B = 10", starter, flags=re.M)
        starter = re.sub(r"^T = 1000.*$", "T = 10", starter, flags=re.M)
        campaign.write("e.toml", starter)
        table_name, keys = "", []
        for line in starter.splitlines():
            if found := re.match(r"\[(.*)\]", line):
                table_name = found.group(1) + "."
            elif found := re.match(r"([A-Za-z_0-9.]+) = ", line):
                keys.append(table_name + found.group(1))
        more = ["sampler.max_failed", "sampler.max_unconverged", "optimiser.tolerance", "optimiser.max_iterations", "optimiser.change",
                "repeats", "prior.alpha", "prior.T", "method", "data.rows", "evaluate.epsilon", "output.samples", "data.divide"]
        for key in dict.fromkeys(keys + more):
            for value in VALUES:
                if not campaign.due():
                    continue
                # These would run for ever.
                if key in ("sampler.B", "repeats") and value == "1000000000000":
                    continue
                campaign.try_run(f"{model}: {key} = {value}", ("e.toml", "--set"), "--set", f"{key}={value}", "--time-limit", "20s")


def mutated(rng, data):
    """A few random changes of some bytes."""
    data = bytearray(data)
    for _ in range(rng.randrange(1, 5)):
        at = rng.randrange(len(data) + 1)
        kind = rng.randrange(6)
        if kind == 0 and at < len(data):
            data[at] = rng.randrange(256)
        elif kind == 1:
            del data[at:at + rng.randrange(1, 9)]
        elif kind == 2:
            data[at:at] = rng.choice([b"\0", b"\xff", b"\n", b",", b"\"", b"'", b"1e999", b"nan", b"-", b"\x1b[2J", b"[", b"{", b"}",
                                      b"99999999999999999999", b"=", b"\r", b"@data", b"\xef\xbb\xbf"])
        elif kind == 3:
            data[at:at] = data[at:at + rng.randrange(1, 40)]
        elif kind == 4 and at < len(data):
            data[at] ^= 1 << rng.randrange(8)
        else:
            del data[at:]
    return bytes(data)


def experiment_files(campaign):
    """Experiment files with a few changed bytes."""
    starters = list(campaign.starters().items())
    for i in range(600):
        if not campaign.due():
            continue
        name, starter = campaign.random.choice(starters)
        starter = re.sub(r"^B = .*$", "B = 10", starter, flags=re.M)
        campaign.write("e.toml", mutated(campaign.random, starter.encode()))
        campaign.try_run(f"changed experiment {i} ({name})", ("e.toml",), "--time-limit", "10s")


def data_files(campaign):
    """Data files of every format with a few changed bytes."""
    rows = [(i % 7, round(math.sin(i), 6), "abc"[i % 3]) for i in range(20)]
    csv = "a,b,c\n" + "".join(f"{a},{b},\"{c}\"\n" for a, b, c in rows)
    arff = "@relation r\n@attribute a numeric\n@attribute 'b b' real\n@attribute c {a,b,c}\n@data\n"
    arff += "".join(f"{a},{b},{c}\n" for a, b, c in rows)
    idx = bytes([0, 0, 8, 2, 0, 0, 0, 20, 0, 0, 0, 3]) + bytes(i % 251 for i in range(60))
    files = {"d.csv": csv.encode(), "d.arff": arff.encode(), "d.idx": idx, "d.csv.gz": gzip.compress(csv.encode(), mtime=0),
             "d.idx.gz": gzip.compress(idx, mtime=0)}
    for i in range(800):
        if not campaign.due():
            continue
        name = campaign.random.choice(list(files))
        categorical = "" if "idx" in name else 'categorical = "auto"\n'
        campaign.write("e.toml", f'name = "f"\nseed = 1\nmodel.mean = {{}}\nsampler.B = 5\n[data]\ntrain = "{name}"\n{categorical}')
        for other in files:
            if os.path.exists(os.path.join(campaign.folder, other)):
                os.remove(os.path.join(campaign.folder, other))
        campaign.write(name, mutated(campaign.random, files[name]))
        campaign.try_run(f"changed {name} {i}", (name, "e.toml"))


def memory(campaign):
    """Little address space."""
    if not shutil.which("prlimit"):
        print("skipped: prlimit is not installed")
        return
    starters = campaign.starters()
    for model, starter in starters.items():
        campaign.write("e.toml", re.sub(r"^n = .*$", "n = 200000", re.sub(r"^B = .*$", "B = 4", starter, flags=re.M), flags=re.M))
        for megabytes in [20, 30, 40, 60, 100, 200, 400]:
            if not campaign.due():
                continue
            before = ["prlimit", f"--as={megabytes << 20}"]
            shutil.rmtree(os.path.join(campaign.folder, "out"), ignore_errors=True)
            outcome = campaign.run("run", "e.toml", "--out", "out", "--time-limit", "5s", before=before)
            # The smallest do not even load the program.
            campaign.judge(f"{model} in {megabytes} MB", outcome, names=("memory", "threads", "libc", "e.toml", "time limit"),
                           codes=(0, 1, 2, 3, 127, 143))


def disk(campaign):
    """Calls of the system that fail, on the program itself."""
    if not shutil.which("strace"):
        print("skipped: strace is not installed")
        return
    campaign.write("d.csv", "a,b\n" + "".join(f"{i},{i * i % 17}\n" for i in range(30)))
    campaign.write("e.toml", 'name = "f"\nseed = 1\nmodel.mean = {}\nsampler.B = 200\n[data]\ntrain = "d.csv"\n')
    whole = os.path.join(campaign.folder, "whole")
    campaign.run("run", "e.toml", "--out", "whole", "--threads", "1")
    bytes_of = lambda folder: open(os.path.join(folder, "samples.csv"), "rb").read()
    for call, error in [("write", "ENOSPC"), ("write", "EIO"), ("fsync", "EIO"), ("fdatasync", "EIO"), ("rename", "EIO"),
                        ("rename", "ENOSPC"), ("openat", "EMFILE"), ("openat", "EACCES"), ("mkdir", "ENOSPC"), ("unlink", "EIO"),
                        ("ftruncate", "EIO"), ("lseek", "EIO"), ("flock", "EIO"), ("mmap", "ENOMEM"), ("clone3", "EAGAIN"),
                        ("read", "EIO")]:
        for when in range(1, 200):
            if not campaign.due():
                continue
            shutil.rmtree(os.path.join(campaign.folder, "out"), ignore_errors=True)
            log = os.path.join(campaign.folder, "strace.txt")
            before = ["strace", "-f", "--seccomp-bpf", "-o", log, "-e", f"trace={call}", "-e", f"inject={call}:error={error}:when={when}"]
            outcome = campaign.run("run", "e.toml", "--out", "out", "--threads", "1", before=before)
            if "INJECTED" not in open(log, errors="replace").read():
                break
            code = outcome[0]
            # What the loader cannot open or map never becomes a program.
            loader = call in ("openat", "mmap", "read") and "shared libraries" in outcome[2]
            # Nor does what the loader falls over without a word, or what Rust's runtime wants before it calls anybody: for the
            # process, and for each thread.
            runtime = call == "mmap" and (code == -signal.SIGSEGV and not outcome[2] or "failed to allocate an alternative stack" in outcome[2])
            if not loader and not runtime:
                campaign.judge(f"{call} {when} fails with {error}", outcome,
                               names=("out", "e.toml", "d.csv", "memory", "thread", "standard"))
            if code == 0 and bytes_of(os.path.join(campaign.folder, "out")) != bytes_of(whole):
                campaign.faults.append((f"{call} {when} {error}", ["other bytes"], ""))
            if code == 1:
                again = campaign.run("run", "e.toml", "--out", "out", "--resume")
                if again[0] != 0 or bytes_of(os.path.join(campaign.folder, "out")) != bytes_of(whole):
                    campaign.faults.append((f"{call} {when} {error}", [f"going on ends with {again[0]}"], again[2]))
                    print(f"FAULT {call} {when} {error}: going on ends with {again[0]}: {again[2][:200]}")


CLASSES = {"hard": hard, "settings": settings, "experiments": experiment_files, "data": data_files, "memory": memory, "disk": disk}


def main():
    args = arguments()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    folder = tempfile.mkdtemp(prefix="npl-campaign-")
    started = time.monotonic()
    campaign = Campaign(args, folder)
    try:
        for name in args.only or CLASSES:
            before = campaign.count
            CLASSES[name](campaign)
            print(f"{name}: {campaign.count - before} cases", flush=True)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    kinds = [reason for _, wrong, _ in campaign.faults for reason in wrong]
    count = lambda *words: sum(any(word in kind for word in words) for kind in kinds)
    print(f"{campaign.count} faults and bad inputs in {time.monotonic() - started:.0f} s (exit codes {campaign.codes}): "
          f"{count('panic', 'code 101')} panics, {count('code -6', 'code 134')} aborts, {count('hang', 'processor')} hangs, "
          f"{count('partial', 'and results')} partial files, {len(campaign.faults)} faults in all")
    sys.exit(bool(campaign.faults))


if __name__ == "__main__":
    main()
