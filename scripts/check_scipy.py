#!/usr/bin/env python3
"""Logistic draws of npl against scipy: python3 scripts/check_scipy.py CONFIG.toml [--draws 10] [--set KEY=VALUE]...

Exports data, weights and starts, minimises the same weighted penalised losses from the same starts with scipy
(L-BFGS-B with tight tolerances, then a trust region, then Newton steps), and compares with what `npl run` finds: the
objective, and the coefficients in posterior standard deviations (over these draws). Fails, with exit code 1, if they
differ. Where the loss has several minima the two may end in different ones: then npl is compared with the bottom of its
own, and both objectives are listed. Also shows what scipy's default stopping rule leaves. Needs numpy, scipy and Python 3.11.
"""
import argparse
import csv
import os
import subprocess
import sys
import tempfile
import tomllib

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit

OBJECTIVE = 1e-6  # relative excess of npl's objective over the minimum
COEFFICIENT = 0.01  # rms difference of coefficients, in posterior standard deviations


class Loss:
    """The loss of one draw, eq. (14): rows with weights, and a penalty on all parameters but the last."""

    def __init__(self, x, y, w, penalty, gamma):
        self.x = np.hstack([x, np.ones((len(x), 1))])
        self.y, self.w, self.penalty, self.gamma = y, w, penalty, gamma

    def value_grad(self, theta):
        margin = self.x @ theta
        value = self.w @ (np.logaddexp(0, margin) - self.y * margin)
        gradient = self.x.T @ (self.w * (expit(margin) - self.y))
        beta = theta[:-1]
        if self.penalty == "ridge":
            value += self.gamma * (beta @ beta) / 2
            gradient[:-1] += self.gamma * beta
        elif self.penalty != "none":
            a, b = self.penalty["student_t"]["a"], self.penalty["student_t"]["b"]
            value += self.gamma * (a + 0.5) * np.log1p(beta**2 / (2 * b)).sum()
            gradient[:-1] += self.gamma * (2 * a + 1) * beta / (2 * b + beta**2)
        return value, gradient

    def hessian(self, theta):
        eta = expit(self.x @ theta)
        hessian = (self.x * (self.w * eta * (1 - eta))[:, None]).T @ self.x
        beta = theta[:-1]
        curvature = np.zeros_like(theta)
        if self.penalty == "ridge":
            curvature[:-1] = self.gamma
        elif self.penalty != "none":
            a, b = self.penalty["student_t"]["a"], self.penalty["student_t"]["b"]
            curvature[:-1] = self.gamma * (2 * a + 1) * (2 * b - beta**2) / (2 * b + beta**2) ** 2
        return hessian + np.diag(curvature)

    def default(self, start):
        """scipy's L-BFGS-B as it stops by default: what the authors' code uses."""
        return minimize(self.value_grad, start, jac=True, method="L-BFGS-B").x

    def polished(self, theta):
        """The minimum of the basin of `theta`: a trust region, then Newton steps while they help."""
        options = {"gtol": 1e-9, "maxiter": 500}
        found = minimize(self.value_grad, theta, jac=True, hess=self.hessian, method="trust-exact", options=options)
        theta, (value, gradient) = found.x, self.value_grad(found.x)
        for _ in range(5):
            trial = theta - np.linalg.solve(self.hessian(theta), gradient)
            trial_value, trial_gradient = self.value_grad(trial)
            if not np.abs(trial_gradient).max() < np.abs(gradient).max():
                break
            theta, value, gradient = trial, trial_value, trial_gradient
        return theta, value

    def minimised(self, start):
        options = {"ftol": 1e-14, "gtol": 1e-8, "maxiter": 3000, "maxfun": 6000, "maxcor": 30}
        rough = minimize(self.value_grad, start, jac=True, method="L-BFGS-B", options=options)
        return self.polished(rough.x)


def read(path):
    with open(path, newline="") as file:
        header = next(csv.reader(file))
    return header, np.loadtxt(path, delimiter=",", skiprows=1, ndmin=2)


def losses(folder, model, draws):
    """The loss of every draw, and its starts."""
    with open(f"{folder}/config.toml", "rb") as file:
        penalty = tomllib.load(file)["model"]["logistic"]["penalty"]
    if penalty == "lasso":
        sys.exit("check_scipy: the lasso has kinks, which these methods of scipy cannot minimise")
    _, train = read(f"{folder}/train.csv")
    _, weights = read(f"{folder}/weights.csv")
    _, starts = read(f"{folder}/starts.csv")
    gamma = model.get("gamma", "1/n")
    gamma = 1 / len(train) if gamma == "1/n" else float(gamma)
    pseudo = read(f"{folder}/pseudo.csv")[1] if os.path.exists(f"{folder}/pseudo.csv") else np.empty((0, 2 + train.shape[1]))
    for draw in range(1, draws + 1):
        own = pseudo[pseudo[:, 0] == draw]
        rows = np.vstack([train, own[:, 2:]])
        w = np.concatenate([weights[draw - 1, 1:], own[:, 1]])
        yield Loss(rows[:, :-1], rows[:, -1], w, penalty, gamma), starts[starts[:, 0] == draw][:, 2:]


def rms(difference, sd):
    return float(np.sqrt(np.mean((difference / sd) ** 2)))


def compare(config, sets, draws, npl):
    with tempfile.TemporaryDirectory() as folder:
        more = [word for key in sets for word in ("--set", key)] + ["--set", "repeats=1"]
        quiet = {"stdout": subprocess.DEVNULL}
        out = f"{folder}/export"
        if subprocess.run([npl, "export", config, "--out", out, "--draws", str(draws), *more], **quiet).returncode:
            sys.exit("check_scipy: npl export failed")
        with open(f"{out}/config.toml", "rb") as file:
            model = tomllib.load(file)["model"]
        if "logistic" not in model:
            sys.exit(f"check_scipy: {config} has a model that is not logistic")
        command = [npl, "run", f"{out}/config.toml", "--set", f"sampler.B={draws}", "--out", f"{folder}/run"]
        if subprocess.run([*command, "--quiet"]).returncode not in (0, 3):
            sys.exit("check_scipy: npl run failed")
        header, samples = read(f"{folder}/run/samples.csv")
        theta = samples[:, [not name.endswith("__") for name in header]]
        objective = samples[:, header.index("objective__")]
        sd = np.maximum(theta.std(axis=0, ddof=1), 1e-12)
        return judge(losses(out, model["logistic"], draws), theta, objective, sd)


def judge(problems, theta, objective, sd):
    print(f"{'draw':>4} {'npl':>18} {'scipy':>18} {'excess':>9} {'rms/sd':>9}   scipy's default: {'excess':>9} {'rms/sd':>9}")
    failed, elsewhere, left = 0, [], []
    for draw, (loss, starts) in enumerate(problems, start=1):
        mine, own = theta[draw - 1], objective[draw - 1]
        basin = loss.polished(mine)
        best = min((loss.minimised(start) for start in starts), key=lambda found: found[1])
        same = abs(basin[1] - best[1]) <= 1e-9 * abs(best[1]) and rms(basin[0] - best[0], sd) < 0.1
        # Where scipy ended in another minimum, it still says where the bottom of this one is.
        bottom = best if same else basin
        excess, distance = (own - bottom[1]) / abs(bottom[1]), rms(mine - bottom[0], sd)
        claimed = abs(loss.value_grad(mine)[0] - own) <= 1e-12 * abs(own)
        bad = excess > OBJECTIVE or distance > COEFFICIENT or not claimed
        if not same:
            elsewhere.append((draw, own, best[1]))
        default = min((loss.default(start) for start in starts), key=lambda end: loss.value_grad(end)[0])
        settled = loss.polished(default)
        rest = (loss.value_grad(default)[0] - settled[1]) / abs(settled[1]), rms(default - settled[0], sd)
        left.append(rest)
        failed += bad
        note = "  FAILED" if bad else "" if same else "  another minimum"
        print(f"{draw:4d} {own:18.12f} {best[1]:18.12f} {excess:9.1e} {distance:9.1e} {'':18}{rest[0]:9.1e} {rest[1]:9.1e}{note}")
    lower = sum(own < other for _, own, other in elsewhere)
    print(f"\n{len(left) - failed} of {len(left)} draws of npl are minima: objective to {OBJECTIVE:g}, coefficients to {COEFFICIENT:g} sd")
    if elsewhere:
        print(f"{len(elsewhere)} draws ended in another minimum than scipy from the same starts: npl lower in {lower}, scipy in {len(elsewhere) - lower}")
        for draw, own, other in elsewhere:
            print(f"  draw {draw}: npl {own:.12f}, scipy {other:.12f}, difference {own - other:+.1e}")
    excess, distance = np.median(np.array(left), axis=0)
    print(f"scipy's default stopping rule leaves, in the median, a relative excess of {excess:.1e} and {distance:.1e} sd rms")
    return failed == 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("config")
    parser.add_argument("--draws", type=int, default=10)
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="as for npl run")
    parser.add_argument("--npl", default=os.environ.get("NPL", "npl"), help="the program [default: $NPL, or npl on the path]")
    args = parser.parse_args()
    if args.draws < 2:
        parser.error("--draws must be 2 or more: their spread is the unit of comparison")
    sys.exit(0 if compare(args.config, args.set, args.draws, args.npl) else 1)


if __name__ == "__main__":
    main()
