#!/usr/bin/env python3
"""docs/calibration.md: how often intervals cover, by `npl coverage`; the tables, and docs/img/coverage.svg.

  scripts/calibration.py [NPL] [FOLDER]     the program, and where its results go (runs/calibration); what is there is gone on with

Nothing but the standard library is needed.
"""

import csv
import functools
import pathlib
import subprocess
import sys

NPL = sys.argv[1] if len(sys.argv) > 1 else "npl"
FOLDER = pathlib.Path(sys.argv[2] if len(sys.argv) > 2 else "runs/calibration")
print = functools.partial(print, flush=True)
ROOT = pathlib.Path(__file__).resolve().parent.parent

NORMAL = """name = "normal"
seed = 1
[data.simulate.normal]
n = 200
mean = 1.0
sd = 1.0
[model.normal]
sigma2 = 1.0
prior = { tau2 = 100.0 }
[sampler]
B = 1000
"""

# A logistic regression of responses whose link is another one: few extreme covariates, and more surprises there than it expects.
LOGISTIC = """name = "logistic"
seed = 1
[data.simulate.mixture]
n = 200
pi = [0.8, 0.2]
mu = [[0.0, 0.0], [3.0, 0.0]]
sigma2 = [1.0, 1.0]
[data.response.binary]
link = "LINK"
beta = { y1 = 1.0, y2 = -0.5 }
intercept = -0.5
[model.logistic]
penalty = "ridge"
[sampler]
B = 500
[nuts]
warmup = 300
chains = 2
"""

LINEAR = """name = "linear"
seed = 1
[data.simulate.normal]
n = ROWS
mean = [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]
sd = 1.0
[data.response.linear]
beta = { y1 = 1.0, y2 = -1.0 }
sigma = 1.0
[model.linear]
penalty = "none"
[sampler]
B = 400
"""


def coverage(name, text, datasets, *more):
    """The lines of coverage.csv."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    config, out = FOLDER / f"{name}.toml", FOLDER / name
    config.write_text(text)
    command = [NPL, "coverage", config, "--out", out, "--datasets", str(datasets), "--quiet", *more]
    subprocess.run(list(map(str, command)), check=True)
    with open(out / "coverage.csv", newline="") as file:
        return list(csv.DictReader(file))


def share(line):
    return f"{float(line['coverage']):.3f} ± {float(line['mcse_coverage']):.3f}"


def show(title, lines):
    print(f"\n{title}\n\n| interval | parameter | truth | coverage | width | score | sd ratio |\n|---|---|--:|--:|--:|--:|--:|")
    for line in lines:
        ratio = f"{float(line['posterior_sd']) / float(line['sampling_sd']):.3f}" if line["posterior_sd"] else ""
        cells = [f"{float(line[k]):.4g}" if line[k] else "" for k in ("truth", "width", "score")]
        name = "all at once" if line["parameter"] == "all__" else line["parameter"]
        print(f"| {line['interval']} | {name} | {cells[0]} | {share(line)} | {cells[1]} | {cells[2]} | {ratio} |")


def picture(points):
    """Coverage with two Monte Carlo errors, a row each, and a line at what it should be."""
    left, end_x, top, row = 290, 640, 36, 22
    low, high = 0.6, 1.0
    at = lambda p: left + (end_x - left) * (p - low) / (high - low)
    height = top + row * len(points) + 40
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 660 {height}" font-family="sans-serif" font-size="12">',
        f'<rect width="660" height="{height}" fill="white"/>',
        '<text x="250" y="20">Coverage of 95 % percentile intervals, ± 2 Monte Carlo errors</text>',
    ]
    end = top + row * len(points)
    for tick in (0.6, 0.7, 0.8, 0.9, 0.95, 1.0):
        colour = "#d33" if tick == 0.95 else "#ccc"
        out.append(f'<line x1="{at(tick):.1f}" x2="{at(tick):.1f}" y1="{top}" y2="{end}" stroke="{colour}"/>')
        out.append(f'<text x="{at(tick):.1f}" y="{end + 16}" text-anchor="middle">{tick:g}</text>')
    for i, (label, rate, error) in enumerate(points):
        y = top + row * (i + 0.5)
        a, b = at(max(low, rate - 2 * error)), at(min(high, rate + 2 * error))
        out.append(f'<text x="{left - 10}" y="{y + 4:.1f}" text-anchor="end">{label}</text>')
        out.append(f'<line x1="{a:.1f}" x2="{b:.1f}" y1="{y}" y2="{y}" stroke="#246" stroke-width="2"/>')
        out.append(f'<circle cx="{at(rate):.1f}" cy="{y}" r="3.5" fill="#246"/>')
    return "\n".join(out + ["</svg>", ""])


points = []


def point(label, lines, parameter):
    line = next(l for l in lines if l["parameter"] == parameter and l["interval"] == "percentile")
    points.append((label, float(line["coverage"]), float(line["mcse_coverage"])))


lines = coverage("normal", NORMAL, 2500, "--interval", "percentile,hdi,bc,bca")
show("Normal mean, n = 200", lines)
point("normal mean, n = 200, NPL", lines, "theta")
three = NORMAL.replace("n = 200", "n = 500").replace("mean = 1.0", "mean = [0.0, 1.0, 2.0]")
show("Three means, n = 500", coverage("three", three, 2000, "--interval", "percentile,simultaneous"))
right = LOGISTIC.replace("LINK", "logit")
wrong = LOGISTIC.replace("LINK", "cauchit").replace("y1 = 1.0, y2 = -0.5", "y1 = 2.0, y2 = -1.0")
wrong_500 = wrong.replace("n = 200", "n = 500")
for key, title, text in [
    ("logit", "right link, n = 200", right),
    ("cauchit", "wrong link, n = 200", wrong),
    ("cauchit-500", "wrong link, n = 500", wrong_500),
]:
    for method in ("npl", "nuts", "advi"):
        kinds = "percentile,bc,bca" if method == "npl" else "percentile"
        lines = coverage(f"{key}-{method}", text, 2000, "--truth", "minimum", "--set", f"method={method}", "--interval", kinds)
        show(f"Logistic, {title}, {method}", lines)
        point(f"logistic slope, {title}, {method.upper()}", lines, "beta.y1")
for rows in (20, 33, 55, 110, 220):
    lines = coverage(f"linear-{rows}", LINEAR.replace("ROWS", str(rows)), 500, "--only", "beta.*")
    show(f"Linear, p = 11, n = {rows}", lines)
    slopes = [l for l in lines if l["parameter"] != "all__"]
    rate = sum(float(l["coverage"]) for l in slopes) / len(slopes)
    ratio = sum((float(l["posterior_sd"]) / float(l["sampling_sd"])) ** 2 for l in slopes) / len(slopes)
    print(f"\nn/p = {rows / 11:.1f}: mean coverage of the ten slopes {rate:.4f}, variance ratio {ratio:.3f}")
    points.append((f"linear slopes, n/p = {rows / 11:.0f}, NPL", rate, float(slopes[0]["mcse_coverage"]) / 10**0.5))
(ROOT / "docs/img/coverage.svg").write_text(picture(points))
