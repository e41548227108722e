#!/usr/bin/env python3
"""npl against numpy and scipy, job by job, on the same weights and starts; scripts/bench_vs_python.sh sets it up.

The Python side is what one would write around numpy, scipy and joblib from the paper: draws in parallel processes;
L-BFGS-B of scipy as it stops by default for logistic regression; weighted EM in numpy, stopped as the authors' code stops
it, for mixtures. `npl export` hands out data, weights, pseudo-samples and starts, and both sides minimise the same losses
from them. Times are wall clock, with as many processes as threads and one BLAS thread in each: npl's are the sampling
seconds of its report, which include scoring the test rows and writing; Python's are of the searches alone, in processes
that have started. Both sides are timed several times, in turn, and the shortest time of each counts: machines are shared. The
ratio of CPU times is disturbed less still: npl's is the difference of two runs, so that start-up cancels. Objectives of both ends are evaluated by the same functions here, in double precision; where a loss has
several minima the two may end in different ones, so the excess of the mean objective comes with its standard error over
draws. Exit code 1 if npl's is higher by more than 1e-6, relative, and two standard errors in any job. Needs numpy,
scipy, joblib and Python 3.11.
"""
import argparse
import json
import math
import os
import platform
import resource
import subprocess
import sys
import tempfile
import time
import tomllib
from dataclasses import dataclass

import joblib
import numpy as np
import scipy
from scipy.special import logsumexp

from check_scipy import Loss, read

EXCESS = 1e-6  # relative excess of npl's mean objective over Python's that is too much
SAME = 1e-9  # relative difference of npl's objectives and the same evaluated here that is rounding
ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")


@dataclass
class Job:
    what: str
    config: str
    draws: int  # of Python
    npl_draws: int
    sets: tuple = ()
    stop: tuple = ()  # EM: change of the mean log likelihood, most iterations
    together: bool = False  # EM: all restarts of a draw in one array


# Every 112th setting of the path.
PATH = (f"path.geometric.ratio={0.98**112!r}", "path.geometric.count=5")
TOY = (1e-7, 6000)
JOBS = {
    "toy": Job("toy mixture, RR-NPL, R = 10", "gmm_toy.toml", 40, 2000, stop=TOY),
    "toy-array": Job("the same, Python's restarts in one array", "gmm_toy.toml", 40, 2000, stop=TOY, together=True),
    "toy-fi": Job("toy mixture, FI-NPL", "gmm_toy_fi.toml", 200, 20000, stop=TOY),
    "mnist": Job("MNIST mixture, FI-NPL", "mnist.toml", 20, 500, stop=(1e-2, 100)),
    "adult": Job("Adult", "adult.toml", 20, 500),
    "polish": Job("Polish", "polish.toml", 40, 2000),
    "arcene": Job("Arcene", "arcene.toml", 10, 200),
    "path": Job("sparsity path, 5 settings", "genetics_path.toml", 100, 2000, sets=PATH),
}


def mixture_loss(y, w, pi, mu, sigma2):
    """−Σ w log Σₖ πₖ N(y; μₖ, σₖ²): the loss of section 3.1."""
    with np.errstate(divide="ignore"):
        log_pi = np.log(pi)
    log_joint = np.empty((len(pi), len(y)))
    for k in range(len(pi)):
        z = (y - mu[k]) ** 2 / sigma2[k]
        log_joint[k] = log_pi[k] - 0.5 * (z.sum(axis=1) + np.log(2 * math.pi * sigma2[k]).sum())
    return -(logsumexp(log_joint, axis=0) @ w)


def em(y, w, start, change, most):
    """Weighted EM (supplement E.2.1) from several starts at once, each until its mean log likelihood changes by less than
    `change`; 1e-6 is added to variances, as the authors do. π is starts x K, μ and σ² are starts x K x d."""
    pi, mu, sigma2 = start
    ends = [part.copy() for part in start]
    live, last = np.arange(len(pi)), np.full(len(pi), -np.inf)
    d = y.shape[1]
    squares = y * y
    for _ in range(most):
        with np.errstate(divide="ignore"):
            constant = np.log(pi) - 0.5 * np.log(2 * math.pi * sigma2).sum(axis=2)
        if d == 1:
            z = (y[:, 0] - mu) ** 2 / sigma2
        else:  # squares multiplied out: three matrix products
            precision = 1 / sigma2
            z = precision @ squares.T - 2 * (mu * precision) @ y.T + (mu**2 * precision).sum(axis=2)[..., None]
        log_joint = constant[..., None] - 0.5 * z
        top = log_joint.max(axis=1, keepdims=True)
        e = np.exp(log_joint - top)
        total = e.sum(axis=1, keepdims=True)
        log_lik = (np.log(total) + top)[:, 0] @ w
        r = e * (w / total)
        mass = r.sum(axis=2) + 10 * np.finfo(float).eps
        pi = mass / mass.sum(axis=1, keepdims=True)
        mu = r @ y / mass[..., None]
        sigma2 = r @ squares / mass[..., None] - mu**2 + 1e-6
        going = np.abs(log_lik - last) >= change
        last = log_lik
        if not going.all():
            for end, part in zip(ends, (pi, mu, sigma2)):
                end[live[~going]] = part[~going]
            live, last, pi, mu, sigma2 = (part[going] for part in (live, last, pi, mu, sigma2))
            if not len(live):
                return ends
    for end, part in zip(ends, (pi, mu, sigma2)):
        end[live] = part
    return ends


def best(ends, loss):
    """The end with the lowest loss; one alone need not be asked."""
    return min(ends, key=loss) if len(ends) > 1 else ends[0]


def rows_of(train, pseudo):
    return np.vstack([train, pseudo]) if len(pseudo) else train


class Mixture:
    def __init__(self, job, config):
        self.k, self.stop, self.together = config["model"]["gmm"]["K"], job.stop, job.together

    def unpack(self, theta):
        """π, μ and σ² of parameter vectors, one per line."""
        k, m = self.k, theta.shape[1]
        d = (m - k) // (2 * k)
        return theta[:, :k], theta[:, k : k + k * d].reshape(-1, k, d), theta[:, k + k * d :].reshape(-1, k, d)

    def draw(self, train, w, pseudo, starts):
        y = rows_of(train, pseudo)
        groups = [starts] if self.together else starts[:, None]
        ends = [em(y, w, self.unpack(group), *self.stop) for group in groups]
        ends = [np.concatenate(part) for part in zip(*ends)]
        return best([np.concatenate([part[r].ravel() for part in ends]) for r in range(len(starts))],
                    lambda theta: self.loss(train, w, pseudo, theta))

    def loss(self, train, w, pseudo, theta):
        return mixture_loss(rows_of(train, pseudo), w, *(part[0] for part in self.unpack(theta[None])))


class Logistic:
    def __init__(self, config, n, b=None):
        model = config["model"]["logistic"]
        gamma = model.get("gamma", "1/n")
        self.gamma = 1 / n if gamma == "1/n" else float(gamma)
        self.penalty = model["penalty"]
        if b is not None:
            self.penalty = {"student_t": {"a": self.penalty["student_t"]["a"], "b": b}}

    def problem(self, train, w, pseudo):
        rows = rows_of(train, pseudo)
        return Loss(rows[:, :-1], rows[:, -1], w, self.penalty, self.gamma)

    def draw(self, train, w, pseudo, starts):
        problem = self.problem(train, w, pseudo)
        return best([problem.default(start) for start in starts], lambda theta: problem.value_grad(theta)[0])

    def loss(self, train, w, pseudo, theta):
        return self.problem(train, w, pseudo).value_grad(theta)[0]


def settings(job, config, n):
    """The model of every setting of a path, or of the only one."""
    if "gmm" in config["model"]:
        return [Mixture(job, config)]
    path = config.get("path")
    if path is None:
        return [Logistic(config, n)]
    grid = path["geometric"]
    return [Logistic(config, n, grid["first"] * grid["ratio"] ** t) for t in range(grid["count"])]


def missing_files(config):
    """Data files of an experiment that npl would not find."""
    with open(config, "rb") as file:
        experiment = tomllib.load(file)
    data = experiment["data"]
    named = [data.get(key, []) for key in ("train", "test", "labels")]
    named.append(experiment["sampler"].get("fixed_init", {}).get("file", []))
    names = [name for value in named for name in ([value] if isinstance(value, str) else value)]
    folders = [folder for folder in (os.environ.get("NPL_DATA"), "data", ".") if folder]
    return [name for name in names if not any(os.path.exists(os.path.join(folder, name)) for folder in folders)]


def npl(*args):
    """Runs the program; its CPU seconds."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    if subprocess.run(args, stdout=subprocess.DEVNULL).returncode:
        sys.exit(f"bench_vs_python: failed: {' '.join(args)}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


class Exported:
    """What draws are made of."""

    def __init__(self, folder):
        with open(f"{folder}/config.toml", "rb") as file:
            self.config = tomllib.load(file)
        self.train = read(f"{folder}/train.csv")[1]
        self.weights = read(f"{folder}/weights.csv")[1][:, 1:]
        self.names, self.starts = read(f"{folder}/starts.csv")
        self.names = self.names[2:]
        pseudo = f"{folder}/pseudo.csv"
        self.pseudo = read(pseudo)[1] if os.path.exists(pseudo) else np.empty((0, 2 + self.train.shape[1]))

    def draw(self, i):
        """Training rows, weights of all rows, pseudo-samples, and starts of draw i."""
        own = self.pseudo[self.pseudo[:, 0] == i + 1]
        starts = self.starts[self.starts[:, 0] == i + 1][:, 2:]
        return self.train, np.concatenate([self.weights[i], own[:, 1]]), own[:, 2:], starts


def run_npl(program, exported, folder, few, draws, workers, simd):
    """Seconds and CPU seconds per draw, the parameters of the draws (settings x draws x parameters), their objectives, and
    the SIMD level."""
    command = [program, "run", f"{folder}/config.toml", "--out", f"{folder}/run", "--force", "--quiet"]
    sets = ["output.samples=samples.npy"]
    if "path" in exported.config:
        sets.append(f"path.keep={json.dumps(exported.names)}")
    command += ["--simd", simd] if simd else []
    command += ["--threads", str(workers), *(word for key in sets for word in ("--set", key))]
    start_up = npl(*command, "--set", f"sampler.B={few}")
    cpu = npl(*command, "--set", f"sampler.B={draws}") - start_up
    with open(f"{folder}/run/report.json") as file:
        repeats = json.load(file)["repeats"]
    with open(f"{folder}/run/samples.columns.json") as file:
        columns = json.load(file)
    samples = np.load(f"{folder}/run/samples.npy").reshape(len(repeats), draws, -1)
    theta = samples[..., [columns.index(name) for name in exported.names]]
    with open(f"{folder}/run/manifest.json") as file:
        simd = json.load(file)["simd"]
    seconds = sum(r["seconds"] for r in repeats) / (len(repeats) * draws)
    cpu /= len(repeats) * (draws - few)
    return seconds, cpu, theta, samples[..., columns.index("objective__")], simd


def timed_draw(model, draw):
    started = time.process_time()
    return model.draw(*draw), time.process_time() - started


def run_python(pool, models, draws):
    """Seconds and CPU seconds per draw, and the parameters of the draws."""
    # Starts the processes, loads what they need and hands them the data.
    pool(joblib.delayed(mixture_loss)(draw[0][:1], draw[1][:1], np.ones(1), *np.ones((2, 1, 1))) for draw in draws)
    pool(joblib.delayed(model.problem)(*draws[0][:3]) for model in models[:1] * 4 if isinstance(model, Logistic))
    started = time.perf_counter()
    ends = pool(joblib.delayed(timed_draw)(model, draw) for model in models for draw in draws)
    seconds = time.perf_counter() - started
    theta, cpu = zip(*ends)
    return seconds / len(ends), sum(cpu) / len(ends), np.array(theta).reshape(len(models), len(draws), -1)


def bench(name, job, args, pool):
    draws = args.draws or job.draws
    npl_draws = max(args.npl_draws or job.npl_draws, draws + 1)
    with tempfile.TemporaryDirectory() as folder:
        sets = [word for key in ("repeats=1", *job.sets) for word in ("--set", key)]
        config = os.path.join(ROOT, "configs", job.config)
        npl(args.npl, "export", config, "--out", folder, "--draws", str(draws), *sets)
        exported = Exported(folder)
        models = settings(job, exported.config, len(exported.train))
        problems = [exported.draw(i) for i in range(draws)]
        rounds = []
        for _ in range(args.rounds):
            ours = run_npl(args.npl, exported, folder, draws, npl_draws, args.workers, args.simd)
            rounds.append((ours, run_python(pool, models, problems)))
    # Draws are the same in every round; times are not.
    npl_seconds, npl_cpu, python_seconds, python_cpu = (
        min(r[side][which] for r in rounds) for side in (0, 1) for which in (0, 1)
    )
    (_, _, npl_theta, claimed, simd), (_, _, python_theta) = rounds[0]
    ends = [
        (model.loss(*problem[:3], npl_theta[s, i]), model.loss(*problem[:3], python_theta[s, i]))
        for s, model in enumerate(models)
        for i, problem in enumerate(problems)
    ]
    ours, theirs = np.array(ends).T
    excess = (ours - theirs) / abs(theirs.mean())
    if not np.allclose(ours, claimed[:, :draws].ravel(), rtol=SAME, atol=0):
        sys.exit(f"bench_vs_python: {name}: objectives of npl are not those evaluated here: the losses differ")
    return {
        "job": name,
        "what": job.what,
        "npl_draws": npl_theta.shape[0] * npl_draws,
        "python_draws": len(ends),
        "npl_seconds_per_draw": npl_seconds,
        "python_seconds_per_draw": python_seconds,
        "ratio": python_seconds / npl_seconds,
        "npl_cpu_per_draw": npl_cpu,
        "python_cpu_per_draw": python_cpu,
        "cpu_ratio": python_cpu / npl_cpu if npl_cpu > 0 else None,  # too few draws for the clock
        "npl_objective": ours.mean(),
        "python_objective": theirs.mean(),
        "excess": excess.mean(),
        "excess_se": excess.std(ddof=1) / math.sqrt(len(excess)),
        "npl_lower": int((ours < theirs - EXCESS * abs(theirs)).sum()),
        "python_lower": int((theirs < ours - EXCESS * abs(theirs)).sum()),
        "simd": simd,
    }


def duration(seconds):
    return f"{seconds * 1e6:.0f} µs" if seconds < 1e-3 else f"{seconds * 1e3:.3g} ms" if seconds < 1 else f"{seconds:.3g} s"


HEAD = """| job | draws, npl / Python | npl, a draw | Python, a draw | ratio | of CPU time | mean objective, npl | Python | excess | lower: npl / Python |
|---|---|---|---|---|---|---|---|---|---|
"""


def line(r):
    return (
        f"| {r['what']} | {r['npl_draws']} / {r['python_draws']} | {duration(r['npl_seconds_per_draw'])} "
        f"| {duration(r['python_seconds_per_draw'])} | {r['ratio']:.1f} "
        f"| {'–' if r['cpu_ratio'] is None else format(r['cpu_ratio'], '.1f')} | {r['npl_objective']:.9f} "
        f"| {r['python_objective']:.9f} | {r['excess']:+.1e} ± {r['excess_se']:.0e} | {r['npl_lower']} / {r['python_lower']} |\n"
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--jobs", default=",".join(JOBS), help="which, separated by commas [default: %(default)s]")
    parser.add_argument("--draws", type=int, metavar="N", help="draws of Python for every job [default: by job]")
    parser.add_argument("--npl-draws", type=int, metavar="N", help="draws of npl for every job [default: by job]")
    parser.add_argument("--rounds", type=int, default=3, help="how often both sides are timed, in turn [default: %(default)s]")
    parser.add_argument("--workers", type=int, default=2, help="threads of npl, processes of Python [default: 2]")
    parser.add_argument("--npl", default=os.environ.get("NPL", "npl"), help="the program [default: $NPL, or npl on the path]")
    parser.add_argument("--simd", choices=["avx512", "avx2", "plain"], help="npl's kernels; with avx2 the BLAS of Python does without AVX-512 too")
    parser.add_argument("--out", default="runs/bench_vs_python", help="folder for table.md and results.json [default: %(default)s]")
    args = parser.parse_args()
    names = args.jobs.split(",")
    unknown = [name for name in names if name not in JOBS]
    if unknown:
        parser.error(f"no job {', '.join(unknown)}; there are {', '.join(JOBS)}")
    if min(args.draws or 2, args.npl_draws or 2) < 2 or min(args.workers, args.rounds) < 1:
        parser.error("--draws and --npl-draws must be 2 or more, --workers and --rounds 1 or more")
    if args.simd == "avx2":
        # Read by OpenBLAS when it is loaded, which the workers do after this.
        os.environ["OPENBLAS_CORETYPE"] = "Haswell"
    results, skipped = [], []
    print(HEAD, end="", flush=True)
    with joblib.parallel_config("loky", n_jobs=args.workers, inner_max_num_threads=1):
        with joblib.Parallel() as pool:
            for name in names:
                missing = missing_files(os.path.join(ROOT, "configs", JOBS[name].config))
                if missing:
                    skipped.append(f"skipped: {JOBS[name].what}: not found below $NPL_DATA, ./data or .: {', '.join(missing)}")
                    continue
                results.append(bench(name, JOBS[name], args, pool))
                print(line(results[-1]), end="", flush=True)
    for note in skipped:
        print(note, file=sys.stderr)
    os.makedirs(args.out, exist_ok=True)
    versions = {"python": platform.python_version(), "numpy": np.__version__, "scipy": scipy.__version__}
    with open(f"{args.out}/results.json", "w") as file:
        json.dump({"workers": args.workers, "rounds": args.rounds, **versions, "skipped": skipped, "jobs": results}, file, indent=2)
    with open(f"{args.out}/table.md", "w") as file:
        file.write(HEAD + "".join(map(line, results)))
    print(f"written to {args.out}: table.md, results.json", file=sys.stderr)
    worse = [r["job"] for r in results if not r["excess"] <= EXCESS + 2 * r["excess_se"]]
    if worse:
        sys.exit(f"bench_vs_python: the mean objective of npl is higher by more than {EXCESS:g}, relative, in {', '.join(worse)}")


if __name__ == "__main__":
    main()
