#!/usr/bin/env python3
"""npl beside what users would pick, regime by regime: scripts/bench_peers.sh [--jobs lasso_polish,ridge_300] [--draws N]

Every job is a function below, in JOBS by its decorator; to add one, write a function that answers a `Result`. Both sides get the
same rows and weights (`npl export`) and run on one thread; times are CPU seconds a draw. npl's are the difference of two runs with
different B, so that reading and what all draws share cancel; a peer's are those of its searches alone, after one that
is not counted; of closed forms, those of its weights, too. Objectives are evaluated by one function in doubles for both: `excess` is
the mean of npl's over the peer's, less 1; below 0 npl ends lower. The peer of `path.warm` is npl without it. Memory is npl's peak.
Needs numpy and, for their jobs, glum and jax; jobs whose data or peer is missing are skipped.
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "GLUM_NUM_THREADS"):
    os.environ[name] = "1"
os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1")

import numpy as np

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
# Above a peer's objective, relative, by which npl's is worse and the job fails.
EXCESS = 1e-8
JOBS = {}


@dataclass
class Result:
    what: str
    peer: str
    draws: int
    npl: float
    theirs: float
    excess: float
    unconverged: int
    memory: int

    def line(self):
        cells = [self.what, self.peer, str(self.draws), duration(self.npl), duration(self.theirs), f"{self.theirs / self.npl:.1f}"]
        return f"| {' | '.join(cells)} | {self.excess:.1e} | {self.unconverged} | {self.memory / 1e6:.0f} MB |\n"


HEAD = """| job | peer | draws | npl, a draw | peer, a draw | ratio | excess | npl's draws not converged | npl's peak memory |
|---|---|---|---|---|---|---|---|---|
"""


def duration(seconds):
    return f"{1e3 * seconds:.3g} ms" if seconds < 1 else f"{seconds:.3g} s"


def job(function):
    JOBS[function.__name__] = function
    return function


def cpu(*command):
    """CPU seconds of a program, and its peak memory in bytes; 0 without GNU time, for what Linux says of a child counts this process."""
    with tempfile.TemporaryFile("w+") as errors, tempfile.NamedTemporaryFile("r") as peak:
        timer = ["/usr/bin/time", "-q", "-f", "%M", "-o", peak.name] if os.path.exists("/usr/bin/time") else []
        child = subprocess.Popen([*timer, *command], stdout=subprocess.DEVNULL, stderr=errors)
        _, status, used = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        # 3: draws that did not converge, which the table tells.
        if child.returncode not in (0, 3):
            errors.seek(0)
            sys.exit(f"bench_peers: failed: {' '.join(command)}\n{errors.read()}")
        kilobytes = int(peak.read() or 0)
    return used.ru_utime + used.ru_stime, 1024 * kilobytes


def table(path):
    with open(path) as file:
        header = file.readline().strip().split(",")
    return header, np.loadtxt(path, delimiter=",", skiprows=1, ndmin=2)


class Draws:
    """Rows and weights of an experiment, and what npl makes of them; `more` draws for the difference of two runs."""

    def __init__(self, args, config, sets, few, more=32, weights=True):
        with tempfile.TemporaryDirectory() as folder:
            sets = [word for key in sets for word in ("--set", key)]
            few = args.draws or few
            if weights:
                cpu(args.npl, "export", config, "--out", f"{folder}/x", "--draws", str(few), *sets)
                self.train = table(f"{folder}/x/train.csv")[1]
                self.x, self.y = np.hstack([self.train[:, :-1], np.ones((len(self.train), 1))]), self.train[:, -1]
                self.w = table(f"{folder}/x/weights.csv")[1][:, 1:]
                starts = f"{folder}/x/starts.csv"
                self.starts = table(starts)[1][:, 2:] if os.path.exists(starts) else None
            run = [args.npl, "run", config, "--out", f"{folder}/run", "--force", "--quiet", "--threads", "1", *sets]
            run += ["--set", "output.samples=samples.csv"]
            first, _ = cpu(*run, "--set", f"sampler.B={few}")
            header, samples = table(f"{folder}/run/samples.csv")
            most = few + max(few, more)
            last, self.memory = cpu(*run, "--set", f"sampler.B={most}")
            self.seconds = (last - first) / (most - few)
            names = [i for i, name in enumerate(header) if not name.endswith("__")]
            self.theta = samples[:, names]
            self.objective = samples[:, header.index("objective__")]
            self.unconverged = int((samples[:, header.index("status__")] > 1).sum())

    def result(self, what, peer, theta, seconds, loss):
        ours = np.mean([loss(t, w) for t, w in zip(self.theta, self.w)])
        theirs = np.mean([loss(t, w) for t, w in zip(theta, self.w)])
        excess = float((ours - theirs) / abs(theirs))
        return Result(what, peer, len(self.w), self.seconds, seconds, excess, self.unconverged, self.memory)


def timed(searches):
    """Ends of the searches and CPU seconds of each; the first is run once more, uncounted."""
    searches[0]()
    started = time.process_time()
    ends = [search() for search in searches]
    return ends, (time.process_time() - started) / len(ends)


def logistic_loss(x, y, l1=0.0, l2=0.0):
    def loss(theta, w):
        m = x @ theta
        return w @ (np.logaddexp(0, m) - y * m) + l1 * np.abs(theta[:-1]).sum() + 0.5 * l2 * (theta[:-1] ** 2).sum()

    return loss


def by_glum(args, what, config, few):
    from glum import GeneralizedLinearRegressor

    draws = Draws(args, config, ["model.logistic.penalty=lasso", "model.logistic.gamma=1/n", "repeats=1"], few)
    gamma, rows = 1 / len(draws.y), np.asfortranarray(draws.x[:, :-1])

    def fit(w, start):
        settings = dict(family="binomial", alpha=gamma, l1_ratio=1.0, scale_predictors=False, gradient_tol=1e-7, max_iter=1000)
        model = GeneralizedLinearRegressor(**settings, start_params=start)
        model.fit(rows, draws.y, sample_weight=w)
        return np.append(model.coef_, model.intercept_)

    warm = fit(np.full(len(draws.y), gamma), None)
    start = np.append(warm[-1], warm[:-1])
    theta, seconds = timed([lambda w=w: fit(w, start) for w in draws.w])
    return draws.result(what, "glum, from the unweighted fit", theta, seconds, logistic_loss(draws.x, draws.y, l1=gamma))


@job
def lasso_polish(args):
    return by_glum(args, "Polish, lasso", f"{ROOT}/configs/polish.toml", 8)


def genetics():
    """The experiment of the path before and after its table [path]."""
    with open(f"{ROOT}/configs/genetics_path.toml") as file:
        text = file.read()
    return text[: text.index("[path]")], text[text.index("[sampler]") : text.index("[output]")]


@job
def lasso_genetics(args):
    # One setting, not a path.
    with tempfile.TemporaryDirectory() as folder:
        kept = "".join(genetics())
        with open(f"{folder}/genetics.toml", "w") as file:
            file.write(kept)
        return by_glum(args, "genetics, lasso", f"{folder}/genetics.toml", 32)


def simulated(folder, n, d):
    """Normal covariates of which every fifth matters."""
    rng = np.random.default_rng(20)
    x = rng.standard_normal((n, d))
    beta = np.where(np.arange(d) % 5 == 0, np.sqrt(5 / d), 0.0)
    y = rng.random(n) < 1 / (1 + np.exp(-x @ beta))
    names = ",".join([f"x{j}" for j in range(d)] + ["y"])
    np.savetxt(f"{folder}/data.csv", np.column_stack([x, y]), delimiter=",", header=names, comments="", fmt="%.9g")
    config = f"{folder}/ridge.toml"
    with open(config, "w") as file:
        file.write(
            f'name = "ridge"\nseed = 1\n[data]\ntrain = "{folder}/data.csv"\ntarget = "y"\n'
            '[model.logistic]\npenalty = "ridge"\ngamma = "1/n"\n[sampler]\nB = 10\n'
        )
    return config


def jax_lbfgs(x, y, gamma, singles, memory=10, most=2000, metric=None):
    """All draws at once: L-BFGS with backtracking, vmapped, on a metric that all share if there is one; plain jax, as users write it."""
    import jax
    import jax.numpy as jnp

    jax.config.update("jax_enable_x64", True)
    kind = jnp.float32 if singles else jnp.float64
    x, y = jnp.asarray(x, kind), jnp.asarray(y, kind)
    goal = 1e-5 if singles else 1e-8
    metric = None if metric is None else jnp.asarray(metric, kind)

    def loss(theta, w):
        m = x @ theta
        return w @ (jnp.logaddexp(0, m) - y * m) + 0.5 * gamma * (theta[:-1] ** 2).sum()

    value_grad = jax.value_and_grad(loss)

    def search(w, start):
        p = start.shape[0]

        def direction(g, s, t, rho):
            def back(q, pair):
                s, t, r = pair
                a = r * (s @ q)
                return q - a * t, a

            q, a = jax.lax.scan(back, g, (s, t, rho), reverse=True)
            yy = t[-1] @ t[-1]
            if metric is None:
                q = q * jnp.where(yy > 0, (s[-1] @ t[-1]) / jnp.where(yy > 0, yy, 1), 1.0)
            else:
                q = metric @ q

            def forth(q, pair):
                s, t, r, a = pair
                return q + s * (a - r * (t @ q)), None

            return -jax.lax.scan(forth, q, (s, t, rho, a))[0]

        def step(state):
            theta, f, g, s, t, rho, k = state
            d = direction(g, s, t, rho)
            slope = g @ d

            def shorter(carry):
                length, f2, g2 = carry
                length = 0.5 * length
                return (length, *value_grad(theta + length * d, w))

            def high(carry):
                return (carry[1] > f + 1e-4 * carry[0] * slope) & (carry[0] > 1e-6)

            length, f2, g2 = jax.lax.while_loop(high, shorter, (jnp.asarray(1.0, kind), *value_grad(theta + d, w)))
            new_s, new_t = length * d, g2 - g
            sy = new_s @ new_t
            keep = sy > 0
            roll = lambda old, new: jnp.where(keep, jnp.concatenate([old[1:], new[None]]), old)
            rho = roll(rho, jnp.where(keep, 1 / jnp.where(keep, sy, 1), 0))
            return theta + new_s, f2, g2, roll(s, new_s), roll(t, new_t), rho, k + 1

        def open_still(state):
            return (jnp.abs(state[2]).max() > goal) & (state[-1] < most)

        pairs = jnp.zeros((memory, p), kind)
        first = (start, *value_grad(start, w), pairs, pairs, jnp.zeros(memory, kind), 0)
        return jax.lax.while_loop(open_still, step, first)[0]

    searches = jax.jit(jax.vmap(search, (0, None)))
    return lambda w, start: np.asarray(searches(jnp.asarray(w, kind), jnp.asarray(start, kind)), float)


def by_jax(args, n, d, few, singles=False, more=128):
    with tempfile.TemporaryDirectory() as folder:
        draws = Draws(args, simulated(folder, n, d), [], few, more=more)
    gamma = 1 / n
    search = jax_lbfgs(draws.x, draws.y, gamma, singles)
    warm = search(np.full((1, n), gamma), np.zeros(d + 1))[0]
    search(draws.w, warm)
    started = time.process_time()
    theta = search(draws.w, warm)
    seconds = (time.process_time() - started) / len(theta)
    peer = f"JAX, vmapped L-BFGS in {'singles' if singles else 'doubles'} from the unweighted fit"
    return draws.result(f"ridge, n = {n}, d = {d}", peer, theta, seconds, logistic_loss(draws.x, draws.y, l2=gamma))


@job
def ridge_100(args):
    return by_jax(args, 2000, 100, 32, more=1024)


@job
def ridge_300(args):
    return by_jax(args, 2000, 300, 32, more=512)


@job
def ridge_1000(args):
    return by_jax(args, 2000, 1000, 16)


@job
def ridge_657(args):
    return by_jax(args, 20_000, 657, 16)


@job
def ridge_tall(args):
    """numpy in singles, with the Hessian of the unweighted fit as a fixed preconditioner, to where singles end."""
    with tempfile.TemporaryDirectory() as folder:
        draws = Draws(args, simulated(folder, 100_000, 20), [], 8, more=256)
    n = len(draws.y)
    x, y, gamma = draws.x.astype(np.float32), draws.y.astype(np.float32), np.float32(1 / n)

    def gradient(theta, w):
        m = 1 / (1 + np.exp(-(x @ theta)))
        g = x.T @ (w * (m - y))
        g[:-1] += gamma * theta[:-1]
        return g, m

    def search(w, theta, solve, most=20):
        for _ in range(most):
            g, _ = gradient(theta, w)
            step = solve @ g
            theta = theta - step
            if n * (step @ g) < 1e-6:
                break
        return theta

    even, theta = np.full(n, 1 / n, np.float32), np.zeros(x.shape[1], np.float32)
    for _ in range(8):
        g, m = gradient(theta, even)
        h = (x * (even * m * (1 - m))[:, None]).T @ x + gamma * np.eye(x.shape[1], dtype=np.float32)
        solve = np.linalg.inv(h)
        theta = theta - solve @ g
    weights = draws.w.astype(np.float32)
    ends, seconds = timed([lambda w=w: search(w, theta, solve) for w in weights])
    what = "ridge, n = 100000, d = 20"
    return draws.result(what, "numpy in singles, preconditioned", np.array(ends, float), seconds, logistic_loss(draws.x, draws.y, l2=1 / n))


def by_jax_preconditioned(args, what, config, few, more):
    """A ridge penalty, JAX in singles, from the unweighted fit and with the inverse of its Hessian for all draws."""
    sets = ["model.logistic.penalty=ridge", "model.logistic.gamma=1/n", "repeats=1"]
    draws = Draws(args, config, sets, few, more=more)
    n = len(draws.y)
    gamma = 1 / n
    start = jax_lbfgs(draws.x, draws.y, gamma, False)(np.full((1, n), gamma), np.zeros(draws.x.shape[1]))[0]
    mean = 1 / (1 + np.exp(-draws.x @ start))
    ridge = np.full(draws.x.shape[1], gamma)
    ridge[-1] = 0
    h = (draws.x * (gamma * mean * (1 - mean))[:, None]).T @ draws.x + np.diag(ridge)
    search = jax_lbfgs(draws.x, draws.y, gamma, True, metric=np.linalg.inv(h + 1e-9 * h.max() * np.eye(len(h))))
    search(draws.w, start)
    started = time.process_time()
    theta = search(draws.w, start)
    seconds = (time.process_time() - started) / len(theta)
    peer = "JAX, vmapped L-BFGS in singles from the unweighted fit, on its metric"
    return draws.result(what, peer, theta, seconds, logistic_loss(draws.x, draws.y, l2=gamma))


@job
def convex_adult(args):
    return by_jax_preconditioned(args, "Adult, ridge", f"{ROOT}/configs/adult.toml", 16, 128)


@job
def convex_genetics(args):
    with tempfile.TemporaryDirectory() as folder:
        with open(f"{folder}/genetics.toml", "w") as file:
            file.write("".join(genetics()))
        return by_jax_preconditioned(args, "genetics, ridge", f"{folder}/genetics.toml", 64, 4096)


def warm(args, what, text, path, settings, few):
    """A path with warm starts beside the same without."""
    before, after = text
    keep = 'keep = ["intercept"]'
    made = []
    with tempfile.TemporaryDirectory() as folder:
        for key in ("true", "false"):
            config = f"{folder}/{key}.toml"
            with open(config, "w") as file:
                file.write(f"{before}\n[path]\n{path}\n{keep}\nwarm = {key}\n{after}")
            made.append(Draws(args, config, [], few, weights=False))
    ours, theirs = made
    excess = float(np.mean((ours.objective - theirs.objective) / np.abs(theirs.objective)))
    seconds = [side.seconds / settings for side in made]
    return Result(what, "npl, cold starts", few, *seconds, excess, ours.unconverged, ours.memory)


@job
def warm_genetics(args):
    path = 'parameter = "model.logistic.penalty.student_t.b"\ngeometric = { first = 1.0, ratio = 0.98, count = 450 }'
    return warm(args, "genetics, 450 settings, warm", genetics(), path, 450, 64)


@job
def warm_adult(args):
    with open(f"{ROOT}/configs/adult.toml") as file:
        text = file.read().replace("repeats = 30", "")
    at = text.index("[sampler]")
    path = 'parameter = "model.logistic.penalty.student_t.b"\ngeometric = { first = 1.0, ratio = 0.5, count = 6 }'
    return warm(args, "Adult, 6 settings, warm", (text[:at], text[at:]), path, 6, 32)


def one_column(args, model, what, few, theirs, loss):
    """Closed forms of one column; numpy draws its own weights where it is timed, as npl does."""
    n = 100_000
    with tempfile.TemporaryDirectory() as folder:
        config = f"{folder}/one.toml"
        with open(config, "w") as file:
            file.write(
                f'name = "one"\nseed = 1\n[data.simulate.normal]\nn = {n}\nmean = 1.0\nsd = 2.0\n{model}\n[sampler]\nB = 10\nlaw = false\n'
            )
        draws = Draws(args, config, [], few, more=2000)
    y = draws.train[:, 0]
    order = np.argsort(y)
    ordered, rng = y[order], np.random.default_rng(1)
    _, seconds = timed([lambda: theirs(rng.standard_exponential(n), y, ordered)] * 200)
    theta = [theirs(w[order] if "q =" in model else w, y, ordered) for w in draws.w]
    return draws.result(f"{what}, n = {n}", "numpy, weights included", theta, seconds, lambda t, w: loss(t, w, y))


def by_cumsum(shares):
    def find(w, _, ordered):
        sums = np.cumsum(w)
        return ordered[np.searchsorted(sums, np.asarray(shares) * sums[-1])]

    return find


def pinball(shares):
    return lambda theta, w, y: sum(w @ ((y - t) * (q - (y < t))) for q, t in zip(shares, theta))


@job
def mean(args):
    return one_column(
        args, "[model.mean]", "mean", 4, lambda w, y, _: [w @ y / w.sum()], lambda theta, w, y: w @ (y - theta[0]) ** 2
    )


@job
def median(args):
    return quantiles_of(args, "[model.quantile]\nq = [0.5]", "median", [0.5])


@job
def quantiles(args):
    return quantiles_of(args, "[model.quantile]\nq = [0.1, 0.5, 0.9]", "three quantiles", [0.1, 0.5, 0.9])


def quantiles_of(args, model, what, shares):
    return one_column(args, model, what, 4, by_cumsum(shares), pinball(shares))


def numpy_em(x, floor, most=6000, change=1e-9):
    """Weighted EM of a diagonal mixture, all components in one array; ends when the loss changes by less."""
    squares = x * x

    def search(w, start, k):
        d = x.shape[1]
        pi, mu, s2 = start[:k].copy(), start[k : k + k * d].reshape(k, d).copy(), start[k + k * d :].reshape(k, d).copy()
        last = np.inf
        for _ in range(most):
            logs = np.log(np.maximum(pi, 1e-300)) - 0.5 * (np.log(2 * np.pi * s2).sum(1) + (mu * mu / s2).sum(1))
            logs = logs - 0.5 * (squares @ (1 / s2).T) + x @ (mu / s2).T
            peak = logs.max(1, keepdims=True)
            r = np.exp(logs - peak)
            total = r.sum(1, keepdims=True)
            loss = -w @ (np.log(total) + peak)[:, 0]
            r *= w[:, None] / total
            pi = np.maximum(r.sum(0), 1e-300)
            mu = (r.T @ x) / pi[:, None]
            s2 = np.maximum((r.T @ squares) / pi[:, None] - mu * mu, floor)
            if last - loss < change:
                break
            last = loss
        return np.concatenate([pi / pi.sum(), mu.ravel(), s2.ravel()])

    return search


def mixture(args, k, few):
    """Components in a row, two standard deviations apart, as scripts/scaling.py has them; searches from one start."""
    n, d, floor = 1000, 2, 1e-4
    with tempfile.TemporaryDirectory() as folder:
        config = f"{folder}/mixture.toml"
        mu = [[2.0 * c / d**0.5] * d for c in range(k)]
        with open(config, "w") as file:
            file.write(
                f'name = "mixture"\nseed = 1\n[data.simulate.mixture]\nn = {n}\npi = {[1 / k] * k}\nmu = {mu}\n'
                f"sigma2 = {[[1.0] * d] * k}\n[model.gmm]\nK = {k}\nvariance_floor = {floor}\n[sampler]\nB = 10\n"
                "fixed_init = { best_of = 5 }\n"
            )
        draws = Draws(args, config, [], few)
    x, start = draws.train, draws.starts[0]
    search = numpy_em(x, floor)

    def loss(theta, w):
        pi, mu, s2 = theta[:k], theta[k : k + k * d].reshape(k, d), theta[k + k * d :].reshape(k, d)
        apart = (x[:, None, :] - mu) ** 2 / s2
        with np.errstate(divide="ignore"):
            logs = np.log(pi) - 0.5 * (np.log(2 * np.pi * s2) + apart).sum(2)
        return -w @ np.logaddexp.reduce(logs, axis=1)

    theta, seconds = timed([lambda w=w: search(w, start, k) for w in draws.w])
    return draws.result(f"mixture, n = {n}, d = {d}, K = {k}", "numpy EM, to 1e-9", theta, seconds, loss)


for k in (2, 5, 10, 20, 50):
    JOBS[f"mixture_{k}"] = lambda args, k=k: mixture(args, k, 8)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--jobs", default=",".join(JOBS), help="which, separated by commas [default: %(default)s]")
    parser.add_argument("--draws", type=int, metavar="N", help="draws of the peer for every job [default: by job]")
    parser.add_argument("--npl", default=os.environ.get("NPL", "npl"), help="the program [default: $NPL, or npl on the path]")
    parser.add_argument("--out", default="runs/bench_peers", help="folder for table.md and results.json [default: %(default)s]")
    args = parser.parse_args()
    names = args.jobs.split(",")
    unknown = [name for name in names if name not in JOBS]
    if unknown:
        parser.error(f"no job {', '.join(unknown)}; there are {', '.join(JOBS)}")
    results = []
    print(HEAD, end="", flush=True)
    for name in names:
        try:
            results.append(JOBS[name](args))
        except ImportError as missing:
            print(f"skipped: {name}: {missing}", file=sys.stderr)
            continue
        print(results[-1].line(), end="", flush=True)
    os.makedirs(args.out, exist_ok=True)
    with open(f"{args.out}/results.json", "w") as file:
        json.dump([asdict(r) for r in results], file, indent=2)
    with open(f"{args.out}/table.md", "w") as file:
        file.write(HEAD + "".join(r.line() for r in results))
    worse = [r.what for r in results if not r.excess <= EXCESS]
    if worse:
        sys.exit(f"bench_peers: the mean objective of npl is higher by more than {EXCESS:g}, relative, in {', '.join(worse)}")


if __name__ == "__main__":
    main()
