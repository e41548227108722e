#!/usr/bin/env python3
"""A run of npl for ArviZ: python3 scripts/npl_to_arviz.py runs/gmm_toy [out.nc]

`mu.1.2` becomes an array, `beta.age` a vector with column names as coordinates; columns that end in `__` become
sample statistics, repeats become chains; of NUTS the chains of all repeats do, and divergences are `diverging`, as ArviZ has
them. Weighted draws (importance sampling) are refused: ArviZ would count them all the same. Reads draws in any format that npl writes (Parquet through pandas), and gives
what ArviZ works on: InferenceData with ArviZ 0.x, a DataTree with 1.x. `log_lik.npy` (of NUTS with `output.pointwise = true`) becomes the
group `log_likelihood`, for `az.loo`; it is of the first repeat, so that the run must have one.
"""
import csv
import gzip
import json
import pathlib
import re
import sys

import arviz as az
import numpy as np


def table(run, samples=None):
    """Names of the columns, and an array with a row per draw."""
    run = pathlib.Path(run)
    if samples is None:
        samples = json.loads((run / "manifest.json").read_text()).get("samples", "samples.csv")
    path = run / samples
    if path.suffix == ".npy":
        return json.loads(path.with_suffix(".columns.json").read_text()), np.load(path, mmap_mode="r")
    if path.suffix == ".parquet":
        import pandas

        frame = pandas.read_parquet(path)
        return list(frame.columns), frame.to_numpy()
    with (gzip.open if path.suffix == ".gz" else open)(path, "rt", newline="") as file:
        return next(csv.reader(file)), np.loadtxt(file, delimiter=",", ndmin=2)


def split(name):
    """`mu.1.2` and `mu[1,2]` as ("mu", "1.2")."""
    bracket = re.fullmatch(r"(.*)\[([\d,]+)\]", name)
    if bracket:
        return bracket[1], bracket[2].replace(",", ".")
    return name.partition(".")[::2]


def shape_of(labels):
    """Shape of the array whose entries have these indices, all of them and in order; None if they are names."""
    if not all(re.fullmatch(r"[1-9]\d*(\.[1-9]\d*)*", label) for label in labels):
        return None
    indices = [tuple(int(i) - 1 for i in label.split(".")) for label in labels]
    if len({len(index) for index in indices}) > 1:
        return None
    shape = tuple(1 + max(axis) for axis in zip(*indices))
    return shape if indices == list(np.ndindex(shape)) else None


def load(run, samples=None):
    """The draws of a run, or those in another file of it, such as samples.relabelled.csv."""
    names, values = table(run, samples)
    if "log_weight__" in names:
        raise SystemExit(f"{run}: draws with weights; resample them by exp(log_weight__) first")
    keys = values[:, [0, names.index("restart__")] if "divergent__" in names else [0]]
    chains = 1 + np.count_nonzero((keys[1:] != keys[:-1]).any(axis=1))
    by_chain = values.reshape(chains, -1, len(names))
    stats, groups = {}, {}
    for j, name in enumerate(names):
        if name == "divergent__":
            stats["diverging"] = by_chain[:, :, j] != 0
        elif name.endswith("__"):
            stats[name[:-2]] = by_chain[:, :, j]
        else:
            head, label = split(name)
            groups.setdefault(head, []).append((label, j))
    posterior, coords, dims = {}, {}, {}
    for head, members in groups.items():
        labels = [label for label, _ in members]
        draws = by_chain[:, :, [j for _, j in members]]
        shape = shape_of(labels)
        if labels == [""]:
            posterior[head] = draws[:, :, 0]
        elif shape:
            posterior[head] = draws.reshape(*draws.shape[:2], *shape)
        else:
            posterior[head], coords[f"{head}_column"], dims[head] = draws, labels, [f"{head}_column"]
    data = {"posterior": posterior, "sample_stats": stats}
    log_lik = pathlib.Path(run) / "log_lik.npy"
    if log_lik.exists() and samples is None:
        values = np.load(log_lik)
        if len(values) == by_chain.shape[0] * by_chain.shape[1]:
            data["log_likelihood"] = {"y": values.reshape(*by_chain.shape[:2], -1)}
    if int(az.__version__.split(".")[0]) >= 1:
        return az.from_dict(data, coords=coords, dims=dims)
    return az.from_dict(**data, coords=coords, dims=dims)


if __name__ == "__main__":
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    data = load(sys.argv[1])
    print(data)
    if len(sys.argv) > 2:
        data.to_netcdf(sys.argv[2])
