#!/usr/bin/env python3
"""Every family of regressions against an independent fitter: python3 scripts/check_families.py [FAMILY...] [--draws 10]

Simulates data by the starter experiment of each family, exports data and weights (`npl export`), fits the same weighted losses with
statsmodels, scikit-learn, scipy or lifelines, and compares the coefficients of ten draws with those of `npl run`. Fails, with exit code 1,
if any differs by more than 1e-6 (least squares: 1e-10) of max(1, |b|). $NPL names the program. Needs numpy, scipy, statsmodels, scikit-learn, lifelines.

    python3 scripts/check_families.py --poisson     Poisson regression, n = 1e5, d = 20: seconds a draw beside statsmodels and glum
"""
import argparse
import csv
import os
import subprocess
import sys
import tempfile
import time
import warnings

import numpy as np

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
NPL = os.environ.get("NPL", os.path.join(ROOT, "target", "release", "npl"))


def read(path):
    with open(path, newline="") as file:
        rows = list(csv.reader(file))
    return rows[0], np.array(rows[1:], dtype=float)


def npl(*args):
    done = subprocess.run([NPL, *args], capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"check_families: npl {' '.join(args)}\n{done.stderr}")


def polish(f, theta):
    """A minimum by Newton's steps with differences of a gradient: independent of npl, to rounding."""
    from scipy.optimize import minimize

    found = minimize(lambda t: f(t)[0], theta, jac=lambda t: f(t)[1], method="BFGS", options={"gtol": 1e-9, "maxiter": 2000})
    theta = found.x
    for _ in range(10):
        gradient = f(theta)[1]
        step = 1e-5
        hessian = np.array([(f(theta + step * e)[1] - f(theta - step * e)[1]) / (2 * step) for e in np.eye(len(theta))])
        theta = theta - np.linalg.solve((hessian + hessian.T) / 2, gradient)
    return theta


class Data:
    def __init__(self, header, cells):
        self.names = [name for name in header if not name.endswith("__")]
        self.x = cells[:, : len(self.names)]
        self.one = np.hstack([self.x, np.ones((len(cells), 1))])
        self.y = cells[:, header.index("response__")]
        self.event = cells[:, header.index("event__")] if "event__" in header else np.ones(len(cells))


def linear(data, w):
    root = np.sqrt(w)[:, None]
    beta = np.linalg.lstsq(data.one * root, data.y * root[:, 0], rcond=None)[0]
    return np.append(beta, np.sqrt(w @ (data.y - data.one @ beta) ** 2 / w.sum()))


def ridge(data, w):
    from sklearn.linear_model import Ridge

    fit = Ridge(alpha=0.05, solver="cholesky", tol=1e-14).fit(data.x, data.y, sample_weight=w)
    return np.append(fit.coef_, fit.intercept_)


def lasso(data, w):
    from sklearn.linear_model import Lasso

    fit = Lasso(alpha=0.05, tol=1e-14, max_iter=1_000_000).fit(data.x, data.y, sample_weight=w)
    return np.append(fit.coef_, fit.intercept_)


def elastic_net(data, w):
    from sklearn.linear_model import ElasticNet

    fit = ElasticNet(alpha=0.05, l1_ratio=0.4, tol=1e-14, max_iter=1_000_000).fit(data.x, data.y, sample_weight=w)
    return np.append(fit.coef_, fit.intercept_)


def glm(data, w, family):
    import statsmodels.api as sm

    fit = sm.GLM(data.y, data.one, family=family, freq_weights=w * len(w)).fit(tol=1e-14, maxiter=200)
    return fit.params


def poisson(data, w):
    import statsmodels.api as sm

    return glm(data, w, sm.families.Poisson())


def logistic(data, w):
    import statsmodels.api as sm

    return glm(data, w, sm.families.Binomial())


def gamma(data, w):
    import statsmodels.api as sm
    from scipy.optimize import brentq
    from scipy.special import digamma

    beta = glm(data, w, sm.families.Gamma(sm.families.links.Log()))
    eta = data.one @ beta
    mean = w @ (eta - np.log(data.y) + data.y * np.exp(-eta) - 1) / w.sum()
    return np.append(beta, brentq(lambda k: mean - np.log(k) + digamma(k), 1e-6, 1e6, xtol=1e-14, rtol=1e-14))


def negative_binomial(data, w):
    from scipy.special import digamma, gammaln

    def loss(theta):
        mean, a = np.exp(data.one @ theta[:-1]), np.exp(theta[-1])
        r, y = 1 / a, data.y
        value = gammaln(r) - gammaln(y + r) + (r + y) * np.log1p(a * mean) - y * np.log(a * mean)
        by_eta = (mean - y) / (1 + a * mean)
        by_r = digamma(r) - digamma(y + r) + np.log1p(a * mean) + (y - mean) / (r + mean)
        return w @ value, np.append(data.one.T @ (w * by_eta), w @ by_r * -r)

    theta = polish(loss, np.append(poisson(data, w), -0.5))
    return np.append(theta[:-1], np.exp(theta[-1]))


def beta(data, w):
    from scipy.special import digamma, expit, gammaln

    def loss(theta):
        m, p = expit(data.one @ theta[:-1]), np.exp(theta[-1])
        a, b, y = m * p, (1 - m) * p, data.y
        value = gammaln(a) + gammaln(b) - gammaln(p) - (a - 1) * np.log(y) - (b - 1) * np.log1p(-y)
        of_a, of_b = digamma(a) - np.log(y), digamma(b) - np.log1p(-y)
        by_p = m * of_a + (1 - m) * of_b - digamma(p)
        return w @ value, np.append(data.one.T @ (w * p * m * (1 - m) * (of_a - of_b)), w @ by_p * p)

    theta = polish(loss, np.zeros(data.one.shape[1] + 1))
    return np.append(theta[:-1], np.exp(theta[-1]))


def multinomial(data, w):
    from sklearn.linear_model import LogisticRegression

    fit = LogisticRegression(C=np.inf, tol=1e-12, max_iter=100_000, solver="newton-cg").fit(data.x, data.y, sample_weight=w * len(w))
    beta, intercept = fit.coef_ - fit.coef_[0], fit.intercept_ - fit.intercept_[0]
    return np.concatenate([beta[1:].ravel(), intercept[1:]])


def ordered(data, w):
    from scipy.special import expit

    k = int(data.y.max()) + 1
    y = data.y.astype(int)

    def loss(theta):
        d = data.x.shape[1]
        cut = np.concatenate([[-np.inf], np.cumsum(np.append(theta[d], np.exp(theta[d + 1 :]))), [np.inf]])
        eta = data.x @ theta[:d]
        high, low = expit(cut[y + 1] - eta), expit(cut[y] - eta)
        p, dh, dl = high - low, high * (1 - high), low * (1 - low)
        by_cut = np.array([(w * (dl * (y == j) - dh * (y + 1 == j)) / p).sum() for j in range(1, k)])
        tail = np.cumsum(by_cut[::-1])[::-1]
        by_u = np.append(tail[0], tail[1:] * np.exp(theta[d + 1 :]))
        return -w @ np.log(p), np.append(data.x.T @ (w * (dh - dl) / p), by_u)

    d = data.x.shape[1]
    theta = polish(loss, np.concatenate([np.zeros(d), [-1.0], np.zeros(k - 2)]))
    return np.append(theta[:d], np.cumsum(np.append(theta[d], np.exp(theta[d + 1 :]))))


def exponential(data, w):
    """Times as counts: Poisson's score of events with the times as exposures has the sign of the coefficients turned."""
    import statsmodels.api as sm

    family = sm.families.Poisson()
    fit = sm.GLM(data.event, data.one, family=family, offset=np.log(data.y), freq_weights=w * len(w)).fit(tol=1e-14, maxiter=200)
    return -fit.params


def weibull(data, w):
    import pandas as pd
    from lifelines import WeibullAFTFitter

    table = pd.DataFrame(data.x, columns=data.names)
    table["t__"], table["e__"], table["w__"] = data.y, data.event, w * len(w)
    fitter = WeibullAFTFitter(penalizer=0.0)
    fitter._scipy_fit_options = {"options": {"gtol": 1e-12, "ftol": 1e-16}}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fitter.fit(table, "t__", "e__", weights_col="w__")
    location = fitter.params_["lambda_"]
    start = [location[name] for name in data.names] + [location["Intercept"], fitter.params_["rho_"]["Intercept"]]

    def loss(theta):
        """lifelines stops early: Newton's steps on the same loss finish it."""
        shape = np.exp(theta[-1])
        z = shape * (np.log(data.y) - data.one @ theta[:-1])
        value = np.exp(z) - data.event * (theta[-1] + z)
        slope = np.exp(z) - data.event
        return w @ value, np.append(-shape * data.one.T @ (w * slope), w @ (z * slope - data.event))

    theta = polish(loss, np.array(start))
    return np.append(theta[:-1], np.exp(theta[-1]))


def student_t(data, w):
    def loss(theta):
        z = (data.y - data.one @ theta[:-1]) / np.exp(theta[-1])
        value = 2.5 * np.log1p(z**2 / 4) + theta[-1]
        slope = 5 * z / (4 + z**2)
        return w @ value, np.append(-data.one.T @ (w * slope) / np.exp(theta[-1]), w @ (1 - z * slope))

    theta = polish(loss, np.zeros(data.one.shape[1] + 1))
    return np.append(theta[:-1], np.exp(theta[-1]))


def huber(data, w):
    """scikit-learn stops early: Newton's steps on the same loss finish it."""
    from sklearn.linear_model import HuberRegressor

    fit = HuberRegressor(epsilon=1.345, alpha=0.0, max_iter=100_000, tol=1e-12).fit(data.x, data.y, sample_weight=w * len(w))

    def loss(theta):
        sigma = np.exp(theta[-1])
        z = (data.y - data.one @ theta[:-1]) / sigma
        outside = np.abs(z) > 1.345
        value = np.where(outside, 2 * 1.345 * np.abs(z) - 1.345**2, z**2)
        slope = np.where(outside, 2 * 1.345 * np.sign(z), 2 * z)
        return w @ (sigma + sigma * value), np.append(-data.one.T @ (w * slope), sigma * (w @ (1 + value - z * slope)))

    theta = polish(loss, np.concatenate([fit.coef_, [fit.intercept_, np.log(fit.scale_)]]))
    return np.append(theta[:-1], np.exp(theta[-1]))


def bent(rho):
    def fit(data, w):
        start = linear(data, w)[:-1]

        def loss(theta):
            value, slope = rho((data.y - data.one @ theta) / 0.9)
            return w @ value, -data.one.T @ (w * slope) / 0.9

        return polish(loss, start)

    return fit


def tukey(z):
    left = np.maximum(0, 1 - (z / 4.685) ** 2)
    return 4.685**2 / 6 * (1 - left**3), z * left**2


def welsch(z):
    left = np.exp(-((z / 2.985) ** 2))
    return 2.985**2 / 2 * (1 - left), z * left


def quantile(data, w):
    from scipy.optimize import linprog

    n, p = data.one.shape
    found = []
    for q in (0.1, 0.5, 0.9):
        cost = np.concatenate([np.zeros(2 * p), q * w, (1 - q) * w])
        rows = np.hstack([data.one, -data.one, np.eye(n), -np.eye(n)])
        solution = linprog(cost, A_eq=rows, b_eq=data.y, bounds=(0, None), method="highs-ds").x
        found.append(solution[:p] - solution[p : 2 * p])
    found = np.array(found)
    return np.concatenate([found[:, :-1].ravel(), found[:, -1]])


NONE = ["penalty=none"]
# The starter of a family, settings of its model, the fitter, and the tolerance.
FAMILIES = {
    "least squares": ("linear", NONE, linear, 1e-10),
    "ridge": ("linear", ["penalty=ridge", "gamma=0.05"], ridge, 1e-10),
    "lasso": ("linear", ["penalty=lasso", "gamma=0.05"], lasso, 1e-6),
    "elastic net": ("linear", ["penalty={elastic_net={ratio=0.4}}", "gamma=0.05"], elastic_net, 1e-6),
    "student_t": ("robust", NONE, student_t, 1e-6),
    "huber": ("robust", NONE + ["loss={huber=1.345}"], huber, 1e-6),
    "tukey": ("robust", NONE + ["loss={tukey=4.685}", "sigma=0.9"], bent(tukey), 1e-6),
    "welsch": ("robust", NONE + ["loss={welsch=2.985}", "sigma=0.9"], bent(welsch), 1e-6),
    "logistic": ("logistic", NONE, logistic, 1e-6),
    "poisson": ("poisson", NONE, poisson, 1e-6),
    "negative binomial": ("negative_binomial", NONE, negative_binomial, 1e-6),
    "gamma": ("gamma", NONE, gamma, 1e-6),
    "beta": ("beta", NONE, beta, 1e-6),
    "multinomial": ("multinomial", NONE, multinomial, 1e-6),
    "ordered": ("ordered", NONE, ordered, 1e-6),
    "exponential": ("exponential", NONE, exponential, 1e-6),
    "weibull": ("weibull", NONE, weibull, 1e-6),
    "quantiles": ("quantile_regression", [], quantile, 1e-6),
}


def check(name, draws):
    starter, settings, fitter, tolerance = FAMILIES[name]
    config = os.path.join(ROOT, "configs", "starters", starter + ".toml")
    with tempfile.TemporaryDirectory() as place:
        sets = [f"--set=model.{starter}.{s}" for s in settings]
        if name in ("ridge", "lasso", "elastic net"):  # plain least squares: no σ
            text = open(config).read().replace('sigma = "estimated"', "#")
            config = os.path.join(place, "config.toml")
            open(config, "w").write(text)
        npl("export", config, "--out", f"{place}/x", "--draws", str(draws), *sets)
        npl("run", config, "--out", f"{place}/run", "--quiet", f"--set=sampler.B={draws}", *sets)
        data = Data(*read(f"{place}/x/train.csv"))
        weights = read(f"{place}/x/weights.csv")[1][:, 1:]
        header, samples = read(f"{place}/run/samples.csv")
    theta = samples[:, [i for i, column in enumerate(header) if not column.endswith("__")]]
    worst = 0.0
    for w, found in zip(weights, theta):
        exact = fitter(data, w)
        worst = max(worst, np.max(np.abs(found - exact) / np.maximum(1, np.abs(exact))))
    verdict = "ok" if worst <= tolerance else "DIFFERS"
    print(f"{name:<18} {len(theta)} draws, {theta.shape[1]} parameters: at most {worst:.1e} apart  {verdict}", flush=True)
    return worst <= tolerance


def time_poisson(draws):
    """One process each, the same weights; npl by one thread."""
    import statsmodels.api as sm
    from glum import GeneralizedLinearRegressor

    rng = np.random.default_rng(1)
    n, d, many = 100_000, 20, 1024
    x = rng.standard_normal((n, d))
    y = rng.poisson(np.exp(0.3 + x @ (0.1 * np.linspace(-1, 1, d))))
    with tempfile.TemporaryDirectory() as place:
        names = [f"x{j}" for j in range(d)]
        np.savetxt(f"{place}/d.csv", np.column_stack([x, y]), delimiter=",", header=",".join(names + ["y"]), comments="")
        config = f"{place}/c.toml"
        open(config, "w").write(
            f'name = "p"\nseed = 1\n[data]\ntrain = "{place}/d.csv"\ntarget = "y"\n[model.poisson]\npenalty = "none"\n[sampler]\nB = {many}\n'
            "init.beta = { normal = [0.0, 0.1] }\ninit.intercept = { normal = [0.0, 0.1] }\n"
        )
        begin = os.times()
        npl("run", config, "--out", f"{place}/run", "--quiet", "--threads", "1")
        end = os.times()
        ours = (end.children_user - begin.children_user) / many
        npl("export", config, "--out", f"{place}/x", "--draws", str(draws))
        weights = read(f"{place}/x/weights.csv")[1][:, 1:]
        header, samples = read(f"{place}/run/samples.csv")
    theta = samples[:, [i for i, column in enumerate(header) if not column.endswith("__")]]
    one = np.hstack([x, np.ones((n, 1))])
    seconds = {"statsmodels": 0.0, "glum": 0.0}
    for w, found in zip(weights, theta):
        begin = time.process_time()
        fit = sm.GLM(y, one, family=sm.families.Poisson(), freq_weights=w * n).fit()
        seconds["statsmodels"] += (time.process_time() - begin) / draws
        assert np.abs(fit.params - found).max() < 1e-7
        begin = time.process_time()
        # Its default ends a step earlier, with six digits.
        fit = GeneralizedLinearRegressor(family="poisson", alpha=0.0, gradient_tol=1e-8).fit(x, y, sample_weight=w)
        seconds["glum"] += (time.process_time() - begin) / draws
        assert np.abs(np.append(fit.coef_, fit.intercept_) - found).max() < 1e-7
    for other, theirs in seconds.items():
        print(f"a draw: npl {1e3 * ours:.1f} ms (reading the file included), {other} {1e3 * theirs:.1f} ms of CPU: {theirs / ours:.1f} times")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("families", nargs="*", metavar="FAMILY", help=", ".join(FAMILIES))
    parser.add_argument("--draws", type=int, default=10)
    parser.add_argument("--poisson", action="store_true")
    args = parser.parse_args()
    if args.poisson:
        return time_poisson(args.draws)
    good = [check(name, args.draws) for name in args.families or FAMILIES]
    sys.exit(0 if all(good) else 1)


if __name__ == "__main__":
    main()
