#!/usr/bin/env python3
"""The README's picture: posterior draws of (mu_1, mu_2) of the toy mixture, RR-NPL beside FI-NPL.

    npl run configs/gmm_toy.toml && npl run configs/gmm_toy_fi.toml && python3 scripts/readme_picture.py
needs numpy and matplotlib.
"""
import csv
import sys

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt


def draws(run):
    with open(f"{run}/samples.csv") as file:
        return [(float(row["mu.1.1"]), float(row["mu.2.1"])) for row in csv.DictReader(file)]


out = sys.argv[1] if len(sys.argv) > 1 else "docs/img/gmm_toy.png"
figure, axes = plt.subplots(1, 2, figsize=(8, 4), sharex=True, sharey=True)
for axis, (run, title) in zip(axes, [("runs/gmm_toy", "RR-NPL, R = 10: every mode"), ("runs/gmm_toy_fi", "FI-NPL: one mode")]):
    axis.scatter(*zip(*draws(run)), s=4, alpha=0.35, linewidths=0, color="#1f5f8b")
    axis.set_title(title, fontsize=11)
    axis.set_xlabel("$\\mu_1$")
    axis.set_xlim(-2.5, 6.5)
    axis.set_ylim(-2.5, 6.5)
    axis.set_aspect("equal")
axes[0].set_ylabel("$\\mu_2$")
figure.tight_layout()
figure.savefig(out, dpi=110)
