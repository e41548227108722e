#!/usr/bin/env python3
"""How the time of npl grows with n, d, K, R, B and threads, on simulated data: python3 scripts/scaling.py [--out DIR]

Every point is a run of its own in a temporary folder; the time is the sampling seconds of its report, the least of
--repeat runs, on one thread except where threads are what varies. Writes scaling.csv, with the mean iterations of a
search beside each time, and scaling.svg: log-log, with a dashed line of slope 1 (-1 for threads) through the first point.
Needs numpy and matplotlib.
"""
import argparse
import csv
import json
import os
import subprocess
import sys
import tempfile
from dataclasses import asdict, dataclass, field

import numpy as np

SEED = 20
# Draws of a point: enough that a point takes about a second at the sizes in the middle.
DRAWS = 256
# What a sweep leaves alone.
BASE = {"mixture": {"n": 1000, "d": 2, "K": 3, "R": None}, "logistic": {"n": 1000, "d": 20, "R": 1}}
SWEEPS = {
    "mixture": {
        "n": [250, 1000, 4000, 16000, 64000],
        "d": [1, 2, 4, 8, 16, 32],
        "K": [2, 3, 4, 6, 8, 12],
        "R": [1, 2, 5, 10, 20],
        "B": [250, 1000, 4000, 16000],
    },
    "logistic": {
        "n": [250, 1000, 4000, 16000, 64000],
        "d": [5, 10, 20, 40, 80, 160],
        "B": [250, 1000, 4000, 16000],
    },
}


@dataclass
class Point:
    model: str
    vary: str
    value: int
    draws: int = DRAWS
    threads: int = 1
    sizes: dict = field(default_factory=dict)


@dataclass
class Timed:
    model: str
    vary: str
    value: int
    n: int
    d: int
    K: int | None
    R: int | None
    draws: int
    threads: int
    seconds: float
    seconds_per_draw: float
    mean_iterations: float


def points(model, vary, cores):
    if vary == "threads":
        counts = [2**i for i in range(cores.bit_length()) if 2**i <= cores]
        counts += [] if counts[-1] == cores else [cores]
        return [Point(model, vary, t, 8 * DRAWS, t, BASE[model]) for t in counts]
    if vary == "B":
        return [Point(model, vary, b, b, sizes=BASE[model]) for b in SWEEPS[model]["B"]]
    # Large points have fewer draws, but never less than a few blocks of a logistic model.
    cost = {value: max(1, value // (BASE[model][vary] or 10)) for value in SWEEPS[model][vary]}
    return [
        Point(model, vary, value, max(64, DRAWS // cost[value]), sizes={**BASE[model], vary: value})
        for value in SWEEPS[model][vary]
    ]


def mixture(sizes):
    """Components in a row, two standard deviations apart whatever d is. With R the searches start at random, without at
    the best of five fits, so that n, d and K are compared in one mode."""
    k, d = sizes["K"], sizes["d"]
    mu = [[2.0 * c / d**0.5] * d for c in range(k)]
    start = f"R = {sizes['R']}" if sizes["R"] else "fixed_init = { best_of = 5 }"
    return f"""
[data.simulate.mixture]
n = {sizes["n"]}
pi = {[1 / k] * k}
mu = {mu}
sigma2 = {[[1.0] * d] * k}
[model.gmm]
K = {k}
variance_floor = 1e-4
[sampler]
{start}
"""


def logistic(sizes, folder):
    """Normal covariates, of which every fifth matters."""
    rng = np.random.default_rng(SEED)
    x = rng.normal(size=(sizes["n"], sizes["d"]))
    beta = np.where(np.arange(sizes["d"]) % 5 == 0, 1.0, 0.0)
    y = rng.random(sizes["n"]) < 1 / (1 + np.exp(-x @ beta))
    header = ",".join([f"x{j}" for j in range(sizes["d"])] + ["y"])
    np.savetxt(f"{folder}/data.csv", np.column_stack([x, y]), "%.6g", ",", header=header, comments="")
    return f"""
[data]
train = "data.csv"
target = "y"
[model.logistic]
penalty = {{ student_t = {{ a = 1.0, b = 1.0 }} }}
[sampler]
R = {sizes["R"]}
"""


def measure(point, npl, repeat):
    with tempfile.TemporaryDirectory() as folder:
        tables = mixture(point.sizes) if point.model == "mixture" else logistic(point.sizes, folder)
        with open(f"{folder}/e.toml", "w") as file:
            file.write(f'name = "scaling"\nseed = {SEED}\noutput.samples = "samples.npy"\n{tables}B = {point.draws}\n')
        command = [npl, "run", "e.toml", "--out", "run", "--quiet", "--threads", str(point.threads)]
        reports = []
        for _ in range(repeat):
            if subprocess.run(command, cwd=folder).returncode not in (0, 3):
                sys.exit(f"scaling: npl run failed at {point}")
            with open(f"{folder}/run/report.json") as file:
                reports.append(json.load(file)["repeats"][0])
    seconds = min(report["seconds"] for report in reports)
    sizes = {name: point.sizes.get(name) for name in ("n", "d", "K", "R")}
    kept = {key: value for key, value in asdict(point).items() if key != "sizes"}
    iterations = reports[0]["diagnostics"]["mean_iterations"]
    return Timed(**kept, **sizes, seconds=seconds, seconds_per_draw=seconds / point.draws, mean_iterations=iterations)


LABELS = {"n": "rows n", "d": "columns d", "K": "components K", "R": "restarts R", "B": "draws B", "threads": "threads"}


def plot(timed, path):
    import matplotlib

    matplotlib.use("Agg")
    matplotlib.rcParams["svg.hashsalt"] = "npl"
    from matplotlib import pyplot
    from matplotlib.ticker import FuncFormatter, LogLocator

    models = [m for m in SWEEPS if any(t.model == m for t in timed)]
    sweeps = [v for v in LABELS if any(t.vary == v for t in timed)]
    size = (2.6 * len(sweeps), 2.6 * len(models))
    figure, axes = pyplot.subplots(len(models), len(sweeps), figsize=size, squeeze=False, layout="constrained")
    for row, model in zip(axes, models):
        for axis, vary in zip(row, sweeps):
            mine = [t for t in timed if (t.model, t.vary) == (model, vary)]
            if not mine:
                axis.axis("off")
                continue
            x = np.array([t.value for t in mine])
            # All draws where their number or the threads vary, else one.
            whole = vary in ("B", "threads")
            y = np.array([t.seconds if whole else t.seconds_per_draw * 1e3 for t in mine])
            axis.loglog(x, y, "o-")
            axis.loglog(x, y[0] * (x / x[0]) ** (-1.0 if vary == "threads" else 1.0), "--", color="grey")
            axis.set_xticks(x, [str(value) for value in x], rotation=45)
            axis.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
            axis.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
            axis.minorticks_off()
            axis.set_xlabel(LABELS[vary])
            axis.set_ylabel("seconds" if whole else "ms a draw")
            axis.set_title(model)
    figure.savefig(path, metadata={"Date": None} if path.endswith(".svg") else None)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    every = sorted({f"{m}:{v}" for m in SWEEPS for v in (*SWEEPS[m], "threads")})
    parser.add_argument("--sweeps", default=",".join(every), help="which, separated by commas [default: %(default)s]")
    parser.add_argument("--repeat", type=int, default=3, metavar="N", help="runs of each point [default: 3]")
    parser.add_argument("--threads", type=int, default=os.cpu_count(), metavar="N", help="most threads [default: all cores]")
    parser.add_argument("--npl", default=os.environ.get("NPL", "npl"), help="the program [default: $NPL, or npl on the path]")
    parser.add_argument("--out", default="runs/scaling", help="folder for scaling.csv and scaling.svg [default: %(default)s]")
    parser.add_argument("--format", choices=["svg", "png"], default="svg")
    args = parser.parse_args()
    unknown = [name for name in args.sweeps.split(",") if name not in every]
    if unknown or args.repeat < 1 or args.threads < 1:
        parser.error(f"no sweep {', '.join(unknown)}; there are {', '.join(every)}" if unknown else "counts must be 1 or more")
    args.npl = os.path.abspath(args.npl) if os.sep in args.npl else args.npl
    timed = []
    os.makedirs(args.out, exist_ok=True)
    with open(f"{args.out}/scaling.csv", "w", newline="") as file:
        table = csv.DictWriter(file, Timed.__dataclass_fields__)
        table.writeheader()
        for name in args.sweeps.split(","):
            for point in points(*name.split(":"), args.threads):
                timed.append(measure(point, args.npl, args.repeat))
                table.writerow(asdict(timed[-1]))
                file.flush()
                print(f"{name:18} {point.value:6} {timed[-1].seconds_per_draw * 1e3:10.4f} ms a draw", file=sys.stderr)
    plot(timed, f"{args.out}/scaling.{args.format}")
    print(f"written to {args.out}: scaling.csv, scaling.{args.format}", file=sys.stderr)


if __name__ == "__main__":
    main()
