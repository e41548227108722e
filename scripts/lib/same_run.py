#!/usr/bin/env python3
"""Whether two run directories hold the same bytes, times aside: python3 scripts/lib/same_run.py RUN OTHER

Results must be the same to the last byte. In report.csv and report.json seconds may differ; in manifest.json machine, times and
command, and the hashes and sizes of the two reports. Exits with 1, and says in what, if anything else differs.
"""
import csv
import json
import sys
from pathlib import Path

TIMES = {"seconds", "threads", "machine", "started", "finished", "command", "checksum"}
REPORTS = {"report.csv", "report.json"}


def files(run):
    return {path.name for path in run.iterdir() if path.is_file() and not path.name.startswith(".npl")}


def timeless(value):
    """A report or manifest without what depends on when and where it was made."""
    if isinstance(value, dict):
        return {key: timeless(entry) for key, entry in value.items() if key not in TIMES | REPORTS}
    return [timeless(entry) for entry in value] if isinstance(value, list) else value


def content(path):
    if path.name == "report.csv":
        with open(path, newline="") as file:
            return [timeless(row) for row in csv.DictReader(file)]
    if path.suffix == ".json":
        return timeless(json.loads(path.read_text()))
    return path.read_bytes()


def main():
    run, other = (Path(name) for name in sys.argv[1:3])
    if files(run) != files(other):
        sys.exit(f"{run} and {other} do not hold the same files: {sorted(files(run) ^ files(other))}")
    differ = [name for name in sorted(files(run)) if content(run / name) != content(other / name)]
    if differ:
        sys.exit(f"{run} and {other} differ: {', '.join(differ)}")


if __name__ == "__main__":
    main()
