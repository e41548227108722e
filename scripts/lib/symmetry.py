#!/usr/bin/env python3
"""Are the draws of two components of a mixture exchangeable? Standard library only.

    symmetry.py RUN [--parameters mu.1.1,mu.2.1] [--from -2] [--to 6] [--cells 12]

Bowker's test of symmetry on the draws, not on a picture: the plane is cut into cells, and each cell is held to its mirror
image about the diagonal: (n_ij - n_ji)^2/(n_ij + n_ji) is chi-square with one degree of freedom if the pair is exchangeable.
Pairs of cells with fewer than ten draws are left out. Prints draws, pairs of cells, the statistic, its p-value and a
verdict: symmetric at p > 0.001.
"""
import argparse
import csv
import math


def chi_square_tail(x, df):
    """P(X > x): the regularised upper incomplete gamma function, by series or continued fraction."""
    a, x = df / 2, x / 2
    if x <= 0:
        return 1.0
    front = math.exp(a * math.log(x) - x - math.lgamma(a))
    if x < a + 1:
        term = total = 1 / a
        n = a
        while abs(term) > 1e-15 * abs(total):
            n += 1
            term *= x / n
            total += term
        return 1 - front * total
    b, c, d = x + 1 - a, 1e300, 1 / (x + 1 - a)
    h = d
    for i in range(1, 1000):
        an = -i * (i - a)
        b += 2
        d = 1 / (an * d + b)
        c = b + an / c
        h *= d * c
        if abs(d * c - 1) < 1e-15:
            break
    return front * h


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("run")
    parser.add_argument("--parameters", default="mu.1.1,mu.2.1")
    parser.add_argument("--from", dest="low", type=float, default=-2.0)
    parser.add_argument("--to", dest="high", type=float, default=6.0)
    parser.add_argument("--cells", type=int, default=12)
    args = parser.parse_args()
    first, second = args.parameters.split(",")
    counts, draws = {}, 0
    place = lambda v: min(args.cells - 1, max(0, int((float(v) - args.low) / (args.high - args.low) * args.cells)))
    with open(f"{args.run}/samples.csv", newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            cell = place(row[first]), place(row[second])
            counts[cell] = counts.get(cell, 0) + 1
            draws += 1
    statistic, pairs = 0.0, 0
    for i in range(args.cells):
        for j in range(i):
            a, b = counts.get((i, j), 0), counts.get((j, i), 0)
            if a + b >= 10:
                statistic += (a - b) ** 2 / (a + b)
                pairs += 1
    p = chi_square_tail(statistic, pairs) if pairs else 1.0
    verdict = ("symmetric" if p > 0.001 else "not symmetric") if pairs else "not judged: too few draws"
    print("parameters,draws,pairs,chi_square,p,verdict")
    print(f"{first} and {second},{draws},{pairs},{statistic:.2f},{p:.4g},{verdict}")


if __name__ == "__main__":
    main()
