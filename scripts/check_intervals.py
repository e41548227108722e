#!/usr/bin/env python3
"""BC, BCa and simultaneous intervals of npl against formulas of their own: python3 scripts/check_intervals.py [--npl npl]

Runs a small logistic regression with `output.influence = true`, and makes the intervals of `npl summary` again from its draws:
BCa as scipy.stats.bootstrap does (z0 from the share of draws below the estimate, ties counted half; quantiles at the corrected
places), with the estimate by Newton's method and the acceleration from derivatives in closed form;
simultaneous ones as fwb's sup-t of quantiles (Montiel Olea and Plagborg-Moller 2019, algorithm 2), by bisection for the tail at which
so many draws lie within all intervals at once. Then BCa again with case weights (against a file of so many copies of each row), with
clusters and strata (against differences of fits whose clusters weigh a little more or less), and in the units of the data, with odds
ratios. Fails, with exit code 1, if they differ. Needs numpy and scipy.
"""
import argparse
import csv
import io
import json
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
from scipy.special import expit
from scipy.stats import norm

EXPERIMENT = """name = "t"
seed = 4
[data]
train = "t.csv"
target = "y"
columns = ["a", "b"]
[sampler]
B = 2000
[model.logistic]
penalty = "ridge"
gamma = 0.01
[output]
influence = true
"""


def rows():
    """Columns, response, case weights, and a cluster and a stratum for each row."""
    rng = np.random.default_rng(3)
    x = np.column_stack([rng.exponential(size=60), rng.normal(size=60)])
    y = (rng.uniform(size=60) < expit(x @ [1.2, -0.7] - 0.5)).astype(float)
    return x, y, 1 + np.arange(60) % 3, np.arange(60) // 3, np.arange(60) // 30


def fit(x, y, weights, gamma):
    """The minimum by Newton's method; weights sum to 1."""
    n, d = x.shape[0], x.shape[1] + 1
    design = np.column_stack([x, np.ones(n)])
    ridge = np.diag([gamma] * (d - 1) + [0.0])
    theta = np.zeros(d)
    for _ in range(50):
        p = expit(design @ theta)
        slopes = design.T @ (weights * (p - y)) + ridge @ theta
        hessian = (design * (weights * p * (1 - p))[:, None]).T @ design + ridge
        theta = theta - np.linalg.solve(hessian, slopes)
    gradients = design * (expit(design @ theta) - y)[:, None]
    return theta, -np.linalg.solve(hessian, (gradients - weights @ gradients).T).T


def skewness(moved):
    """The acceleration."""
    return (moved**3).sum(0) / (6 * (moved**2).sum(0) ** 1.5)


def moved_by_clusters(x, y, weights, clusters, strata, gamma):
    """Derivatives of the fit by the mass of each cluster, by differences; strata keep their shares."""
    def at(mass):
        each = weights * mass[clusters]
        for s in np.unique(strata):
            inside = strata == s
            each[inside] *= weights[inside].sum() / each[inside].sum()
        return fit(x, y, each / each.sum(), gamma)[0]

    step, found = 1e-4, []
    for k in range(clusters.max() + 1):
        up, down = (np.where(np.arange(clusters.max() + 1) == k, 1 + sign * step, 1.0) for sign in (1, -1))
        found.append((at(up) - at(down)) / (2 * step))
    return np.array(found)


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
    x, y, counts, clusters, strata = rows()
    table = np.column_stack([x, y, counts, clusters, strata])
    with tempfile.TemporaryDirectory() as folder:
        place = pathlib.Path(folder)
        (place / "t.toml").write_text(EXPERIMENT)
        line = "{!r},{!r},{:.0f},{:.0f},{:.0f},{:.0f}\n"
        (place / "t.csv").write_text("a,b,y,count,cluster,stratum\n" + "".join(line.format(*map(float, row)) for row in table))
        names = ["beta.a", "beta.b", "intercept"]
        failed = False

        def told(*arguments):
            return subprocess.run([npl, *arguments], cwd=place, check=True, capture_output=True, text=True).stdout

        def run(*keys):
            """Draws, and the kept influences of the rows."""
            settings = [word for key in keys for word in ("--set", key)]
            told("run", "t.toml", "--quiet", "--force", *settings)
            with open(place / "runs/t/samples.csv") as file:
                draws = np.array([[float(row[name]) for name in names] for row in csv.DictReader(file)])
            with open(place / "runs/t/influence.csv") as file:
                return draws, np.array([[float(row[name]) for name in names] for row in csv.DictReader(file)])

        def asked(kind, *arguments, called=names):
            text = told("summary", "runs/t", "--interval", kind, "--level", "0.9", "--format", "csv", *arguments)
            found = {row["parameter"]: row for row in csv.DictReader(io.StringIO(text))}
            return np.array([[float(found[name]["lower"]), float(found[name]["upper"])] for name in called])

        def compare(what, found, expected, tolerance):
            nonlocal failed
            off = float(np.max(np.abs(np.asarray(found) - expected)))
            print(f"{what}: {off:.1e}, allowed {tolerance:.0e}{'' if off <= tolerance else '  FAILED'}")
            failed |= not off <= tolerance

        def bca(draws, estimate, acceleration):
            return np.array([corrected(draws[:, j], estimate[j], acceleration[j], 0.9) for j in range(3)])

        draws, kept = run()
        equal = np.full(60, 1 / 60)
        estimate, influence = fit(x, y, equal, 0.01)
        compare("influence of rows", kept, influence, 1e-4 * np.abs(influence).max())
        tolerance = 1e-4 * draws.std(0).min()
        compare("bc", asked("bc"), bca(draws, estimate, np.zeros(3)), tolerance)
        compare("bca", asked("bca"), bca(draws, estimate, skewness(influence)), tolerance)
        compare("percentile", asked("percentile"), np.quantile(draws, [0.05, 0.95], axis=0).T, 1e-12)
        # Ranks are whole: the ends lie within a draw or two of each other.
        gaps = [np.diff(np.sort(draws[:, j]))[[1, 2, 3, 20, 30, -20, -3, -2]].max() for j in range(3)]
        compare("simultaneous", asked("simultaneous"), supt(draws, 0.9), 4 * max(gaps))

        draws, kept = run("data.weight=count")
        copies = np.repeat(np.arange(60), counts)
        estimate, influence = fit(x[copies], y[copies], np.full(len(copies), 1 / len(copies)), 0.01)
        compare("influence with case weights", kept[copies], influence, 1e-4 * np.abs(influence).max())
        compare("bca, case weights", asked("bca"), bca(draws, estimate, skewness(influence)), tolerance)

        draws, _ = run("data.weight=count", "data.cluster=cluster", "data.stratify=stratum")
        by_clusters = moved_by_clusters(x, y, counts / counts.sum(), clusters, strata, 0.01)
        compare("bca, clusters and strata", asked("bca"), bca(draws, estimate, skewness(by_clusters)), tolerance)

        draws, _ = run("data.weight=count", "data.standardise=numeric")
        columns = json.loads((place / "runs/t/preparation.json").read_text())["rounds"][0]
        mean, sd = (np.array([column[key] for column in columns]) for key in ("mean", "sd"))
        estimate, influence = fit((x[copies] - mean) / sd, y[copies], np.full(len(copies), 1 / len(copies)), 0.01)
        units = np.block([[np.diag(1 / sd), np.zeros((2, 1))], [-(mean / sd)[None, :], np.ones((1, 1))]]).T
        expected = bca(draws @ units, estimate @ units, skewness(influence @ units))
        tolerance = 1e-4 * (draws @ units).std(0).min()
        compare("bca, units of the data", asked("bca", "--units", "data"), expected, tolerance)
        expected[:2] = np.exp(expected[:2])
        ratios = asked("bca", "--units", "data", "--ratios", called=["exp(beta.a)", "exp(beta.b)", "intercept"])
        # Quantiles lie between draws, where a line is no exponential.
        compare("bca, odds ratios", ratios, expected, 0.02 * draws.std(0).min())
        sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
