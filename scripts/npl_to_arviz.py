#!/usr/bin/env python3
"""A run of npl as ArviZ InferenceData: python3 scripts/npl_to_arviz.py runs/gmm_toy [out.nc]

`mu.1.2` becomes an array, `beta.age` a vector with column names as coordinates; columns that end in `__` become
sample statistics, repeats become chains. Works with ArviZ 0.x and 1.x.
"""
import csv
import sys

import arviz as az
import numpy as np


def load(run):
    with open(f"{run}/samples.csv", newline="") as file:
        header, *rows = csv.reader(file)
    table = np.array(rows, dtype=float)
    chains = int(table[:, 0].max())
    by_chain = table.reshape(chains, -1, len(header))
    stats = {h[:-2]: by_chain[:, :, j] for j, h in enumerate(header) if h.endswith("__")}
    groups = {}
    for j, name in enumerate(header):
        if not name.endswith("__"):
            head, _, rest = name.partition(".")
            groups.setdefault(head, []).append((rest, j))
    posterior, coords, dims = {}, {}, {}
    for head, members in groups.items():
        values = by_chain[:, :, [j for _, j in members]]
        labels = [rest for rest, _ in members]
        if labels == [""]:
            posterior[head] = values[:, :, 0]
        elif all(part.isdigit() for label in labels for part in label.split(".")):
            shape = np.array([[int(i) for i in label.split(".")] for label in labels]).max(axis=0)
            posterior[head] = values.reshape(*values.shape[:2], *shape)
        else:
            posterior[head], coords[f"{head}_column"], dims[head] = values, labels, [f"{head}_column"]
    if int(az.__version__.split(".")[0]) >= 1:
        return az.from_dict({"posterior": posterior, "sample_stats": stats}, coords=coords, dims=dims)
    return az.from_dict(posterior=posterior, sample_stats=stats, coords=coords, dims=dims)


if __name__ == "__main__":
    data = load(sys.argv[1])
    print(data)
    if len(sys.argv) > 2:
        data.to_netcdf(sys.argv[2])
