#!/usr/bin/env python3
"""BC, BCa and simultaneous intervals of npl against formulas of their own: python3 scripts/check_intervals.py [--npl npl]

Runs a small logistic regression with `output.influence = true`, and makes the intervals of `npl summary` again from its draws:
BCa as scipy.stats.bootstrap does (z0 from the share of draws below the estimate, ties counted half; quantiles at the corrected
places), with the estimate from scipy.optimize and the acceleration from the influence of the rows, by derivatives in closed form;
simultaneous ones as fwb's sup-t of quantiles (Montiel Olea and Plagborg-Moller 2019, algorithm 2), by bisection for the tail at which
so many draws lie within all intervals at once. Fails, with exit code 1, if they differ. Needs numpy and scipy.
"""
import argparse
import csv
import io
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit
from scipy.stats import norm

EXPERIMENT = """name = "t"
seed = 4
[data]
train = "t.csv"
target = "y"
[sampler]
B = 2000
[model.logistic]
penalty = "ridge"
gamma = 0.01
[output]
influence = true
"""


def rows():
    rng = np.random.default_rng(3)
    x = np.column_stack([rng.exponential(size=60), rng.normal(size=60)])
    y = (rng.uniform(size=60) < expit(x @ [1.2, -0.7] - 0.5)).astype(float)
    return x, y


def fit(x, y, gamma):
    """The estimate at equal weights, and the influence of every row on it."""
    n, d = x.shape[0], x.shape[1] + 1
    design = np.column_stack([x, np.ones(n)])
    ridge = np.diag([gamma] * (d - 1) + [0.0])

    def value(theta):
        margin = design @ theta
        return np.mean(np.logaddexp(0, margin) - y * margin) + theta @ ridge @ theta / 2

    def slopes(theta):
        return design.T @ (expit(design @ theta) - y) / n + ridge @ theta

    def hessian(theta):
        p = expit(design @ theta)
        return (design * (p * (1 - p))[:, None]).T @ design / n + ridge

    theta = minimize(value, np.zeros(d), jac=slopes, method="BFGS").x
    for _ in range(20):
        theta = theta - np.linalg.solve(hessian(theta), slopes(theta))
    gradients = design * (expit(design @ theta) - y)[:, None]
    return theta, -np.linalg.solve(hessian(theta), (gradients - gradients.mean(0)).T).T


def corrected(draws, estimate, acceleration, level):
    share = (np.mean(draws < estimate) + np.mean(draws <= estimate)) / 2
    z0 = norm.ppf(share)
    z = z0 + norm.ppf([(1 - level) / 2, (1 + level) / 2])
    return np.quantile(draws, norm.cdf(z0 + z / (1 - acceleration * z)))


def supt(draws, level):
    """The widest tail whose intervals hold so many draws at once; by bisection."""
    def inside(tail):
        low, high = np.quantile(draws, [tail, 1 - tail], axis=0)
        return np.mean(((draws >= low) & (draws <= high)).all(axis=1))

    low, high = 0.0, (1 - level) / 2
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if inside(middle) >= level else (low, middle)
    return np.quantile(draws, [low, 1 - low], axis=0).T


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--npl", default="npl")
    npl = parser.parse_args().npl
    x, y = rows()
    with tempfile.TemporaryDirectory() as folder:
        place = pathlib.Path(folder)
        (place / "t.toml").write_text(EXPERIMENT)
        (place / "t.csv").write_text("a,b,y\n" + "".join(f"{float(a)!r},{float(b)!r},{int(c)}\n" for (a, b), c in zip(x, y)))

        def told(*arguments):
            return subprocess.run([npl, *arguments], cwd=place, check=True, capture_output=True, text=True).stdout

        told("run", "t.toml", "--quiet")
        with open(place / "runs/t/samples.csv") as file:
            table = list(csv.DictReader(file))
        names = ["beta.a", "beta.b", "intercept"]
        draws = np.array([[float(row[name]) for name in names] for row in table])
        estimate, influence = fit(x, y, 0.01)
        kept = np.loadtxt(place / "runs/t/influence.csv", delimiter=",", skiprows=1)
        acceleration = (influence**3).sum(0) / (6 * (influence**2).sum(0) ** 1.5)
        failed = False

        def compare(what, found, expected, tolerance):
            nonlocal failed
            off = float(np.max(np.abs(np.asarray(found) - expected)))
            print(f"{what}: {off:.1e}, allowed {tolerance:.0e}{'' if off <= tolerance else '  FAILED'}")
            failed |= not off <= tolerance

        compare("influence of rows", kept, influence, 1e-4 * np.abs(influence).max())
        spread = draws.std(0).min()
        for kind in ["bc", "bca", "simultaneous", "percentile"]:
            text = told("summary", "runs/t", "--interval", kind, "--level", "0.9", "--format", "csv")
            found = {row["parameter"]: row for row in csv.DictReader(io.StringIO(text))}
            found = np.array([[float(found[name]["lower"]), float(found[name]["upper"])] for name in names])
            if kind == "simultaneous":
                # Ranks are whole: the ends lie within a draw or two of each other.
                gaps = [np.diff(np.sort(draws[:, j]))[[1, 2, 3, 20, 30, -20, -3, -2]].max() for j in range(3)]
                expected, tolerance = supt(draws, 0.9), 4 * max(gaps)
            else:
                a = acceleration if kind == "bca" else np.zeros(3)
                expected = np.array([corrected(draws[:, j], estimate[j], a[j], 0.9) for j in range(3)])
                tolerance = 1e-4 * spread
                if kind == "percentile":
                    expected, tolerance = np.quantile(draws, [0.05, 0.95], axis=0).T, 1e-12
            compare(kind, found, expected, tolerance)
        sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
