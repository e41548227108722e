#!/usr/bin/env python3
"""The paper's numbers beside the measured ones. Standard library only.

    compare.py runs TABLE                         names of the runs behind a table
    compare.py table TABLE --out DIR --setting S  DIR/S/table_TABLE.csv and .md, and the same on the screen
    compare.py summary --out DIR --setting S      all tables and figures in one: DIR/summary.csv and .md

The paper's numbers are those of scripts/paper/tables.csv; measured ones come from report.csv and report.json of the
runs that scripts/paper/runs.txt lists.

A mean m over r repeats agrees with the paper's M, spread S over r' repeats, if |m - M| is within three standard errors of
that difference, S sqrt(1/r + 1/r') with the Monte Carlo error of m added in quadrature, plus half a unit of the paper's
last digit. A spread agrees if the logarithm of the ratio is within three of its standard errors,
sqrt(1/2(r-1) + 1/2(r'-1)). Counts agree if they round to the paper's. Run times are set in proportion, not judged: the
paper's NPL ran on 288 virtual CPUs; those of runs that are shorter than the paper's are not compared.
"""
import argparse
import csv
import json
import math
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAPER = ROOT / "scripts" / "paper"
COLUMNS = ["table", "row", "column", "paper", "paper_spread", "measured", "measured_spread", "repeats",
           "difference_in_spreads", "band_in_spreads", "verdict", "setting"]
SHOWN = ["table", "row", "column", "paper", "measured", "difference", "band", "verdict"]
# Settings that change how much is computed, and not what.
LENGTHS = ("sampler.B=", "nuts.warmup=", "advi.max_iterations=", "path.", "prior.T=")


def rows_of(name):
    with open(PAPER / name, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def settings_of(run, setting):
    """How the run is made at this setting, and whether that is less than the paper's."""
    for line in (PAPER / "runs.txt").read_text(encoding="utf-8").splitlines():
        fields = [field.strip() for field in line.split("|")]
        if len(fields) == 7 and fields[0] == run:
            text = fields[{"smoke": 4, "quick": 5, "full": 6}[setting]]
            return ("" if text == "-" else text), any(part.startswith(LENGTHS) for part in text.split())
    return "", False


@dataclass
class Measured:
    """Values of one metric over repeats, and the Monte Carlo error of their mean."""
    values: list
    mcse: float = 0.0

    @property
    def mean(self):
        return math.fsum(self.values) / len(self.values)

    @property
    def sd(self):
        if len(self.values) < 2:
            return math.nan
        m = self.mean
        return math.sqrt(math.fsum((v - m) ** 2 for v in self.values) / (len(self.values) - 1))


def measure(runs, run, metric):
    """The metric of a run over its repeats, or a sentence that says why there is none."""
    why = runs / f"{run}.why"
    if why.exists():
        return why.read_text(encoding="utf-8").strip()
    if run.endswith("_data"):
        return described(runs / f"{run}.txt", metric)
    finished = [key.with_suffix("") for key in (runs / run).glob("*.key")]
    folders = sorted((f for f in finished if (f / "manifest.json").exists()), key=lambda f: int(f.name))
    if not folders:
        return "not run"
    values, errors = [], []
    for folder in folders:
        value, error = in_repeat(folder, metric)
        if value is None:
            return f"not measured: the report has no {metric}"
        values.append(value)
        errors.append(error)
    return Measured(values, math.sqrt(math.fsum(e * e for e in errors)) / len(errors))


def in_repeat(folder, metric):
    """Value and Monte Carlo error of the metric in one run directory."""
    if metric == "variance":
        with open(folder / "summary.csv", newline="", encoding="utf-8") as file:
            row = next(csv.DictReader(file))
        sd = float(row["sd"])
        return sd * sd, 2 * sd * float(row["mcse_sd"])
    if metric == "total_seconds":
        return json.loads((folder / "manifest.json").read_text(encoding="utf-8"))["seconds"], 0.0
    repeat = json.loads((folder / "report.json").read_text(encoding="utf-8"))["repeats"][0]
    if metric == "ess":
        weights = repeat.get("diagnostics", {}).get("importance")
        return (weights["ess"] if weights else repeat["draws"]), 0.0
    value = repeat.get(metric)
    if isinstance(value, dict):
        return value["value"], value.get("mcse") or 0.0
    return value, 0.0


def described(path, metric):
    """A fact of a data set, as table3_uci_data.sh notes it: a line NAME VALUE for each."""
    if not path.exists():
        return "not run"
    facts = dict(line.split() for line in path.read_text(encoding="utf-8").splitlines())
    return Measured([float(facts[metric])])


def decimals(text):
    return len(text.split(".")[1]) if "." in text else 0


def shown(value, text):
    """With one decimal more than the paper's number has; small and large ones with three digits."""
    if math.isnan(value):
        return ""
    if "." not in text:
        return f"{value:.3g}" if abs(value) < 1000 else f"{value:.0f}"
    return f"{value:.{decimals(text) + 1}f}"


def judge(cell, measured):
    """Difference and band in the paper's spreads, and the verdict."""
    text, repeats = cell["value"], int(cell["repeats"])
    paper, half = float(text), 0.5 * 10 ** -decimals(text)
    spread = float(cell["spread"]) if cell["spread"] else None
    mean, r = measured.mean, len(measured.values)
    kind = cell["kind"]
    if kind == "exact":
        return "", "", "agrees" if abs(mean - paper) <= half * (1 + 1e-9) else "differs"
    if kind == "time":
        ratio = paper / max(mean, 1e-6)
        times = max(ratio, 1 / ratio)
        word = f"{times:.0f}" if times >= 10 else f"{times:.1f}"
        word += " times as fast" if ratio >= 1 else " times as slow"
        away = f"{(mean - paper) / spread:+.1f}" if spread else ""
        return away, "", f"{word} (other hardware)"
    if kind == "sd":
        if r < 2 or not measured.sd > 0:
            return "", "", "not judged: one repeat"
        band = 3 * math.sqrt(0.5 / (r - 1) + 0.5 / (repeats - 1)) + math.log((paper + half) / paper)
        away = math.log(measured.sd / paper)
        return f"log {away:+.2f}", f"log {band:.2f}", "agrees" if abs(away) <= band else "differs"
    if spread is None and kind == "mean":
        return "", "", f"not judged: one run, no spread; {100 * (mean - paper) / abs(paper):+.1f} %"
    if spread is None:
        band = 3 * measured.mcse + half
        return f"{mean - paper:+.3f}", f"{band:.3f}", "agrees" if abs(mean - paper) <= band else "differs"
    band = 3 * math.sqrt(spread ** 2 * (1 / repeats + 1 / r) + measured.mcse ** 2) + half
    away = abs(mean - paper)
    verdict = "agrees" if away <= band else "differs"
    return f"{(mean - paper) / spread:+.2f}", f"{band / spread:.2f}", verdict


def compare(cell, runs, setting):
    """One cell of a table as a row of the result."""
    how, shorter = settings_of(cell["run"], setting)
    row = {"table": cell["table"], "row": cell["row"], "column": cell["column"], "paper": cell["value"],
           "paper_spread": cell["spread"], "setting": how}
    measured = measure(runs, cell["run"], cell["metric"])
    if isinstance(measured, str):
        return {**dict.fromkeys(COLUMNS, ""), **row, "verdict": measured}
    away, band, verdict = judge(cell, measured)
    if shorter and cell["kind"] == "time":
        away, verdict = "", "not compared"
    value, sd = measured.mean, measured.sd
    if cell["kind"] == "sd":
        value, sd = sd, math.nan
    text = cell["value"]
    row.update(measured=shown(value, text), repeats=len(measured.values),
               measured_spread=shown(sd, cell["spread"] or text), difference_in_spreads=away, band_in_spreads=band,
               verdict=f"{verdict}; short run" if shorter else verdict)
    return row


def with_spread(value, spread):
    return f"{value} ± {spread}" if spread else value


def face(row):
    """What is shown of a row."""
    measured = with_spread(row["measured"], row["measured_spread"])
    if str(row["repeats"]) not in ("", "1"):
        measured += f" ({row['repeats']})"
    return [row["table"], row["row"], row["column"], with_spread(row["paper"], row["paper_spread"]), measured,
            row["difference_in_spreads"], row["band_in_spreads"], row["verdict"]]


def markdown(head, rows):
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    lines += ["| " + " | ".join(str(c).replace("|", "\\|") for c in row) + " |" for row in rows]
    return "\n".join(lines) + "\n"


def text(head, rows):
    widths = [max(len(str(row[i])) for row in [head] + rows) for i in range(len(head))]
    return "\n".join("  ".join(str(c).ljust(w) for c, w in zip(row, widths)).rstrip() for row in [head] + rows)


def write_csv(path, rows):
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def file_name(table):
    return "table_" + table.replace(" ", "_")


def table(args):
    cells = [cell for cell in rows_of("tables.csv") if cell["table"] == args.table]
    if not cells:
        sys.exit(f"compare.py: scripts/paper/tables.csv has no table {args.table}")
    folder = Path(args.out) / args.setting
    rows = [compare(cell, folder / "runs", args.setting) for cell in cells]
    name = folder / file_name(args.table)
    write_csv(name.with_name(name.name + ".csv"), rows)
    faces = [face(row)[1:] for row in rows]
    name.with_name(name.name + ".md").write_text(markdown(SHOWN[1:], faces), encoding="utf-8")
    title = args.table if args.table.startswith("text") else f"Table {args.table}"
    print(f"\n{title}, {args.setting} setting: mean ± sd (repeats); difference and band in the paper's spreads")
    print(text(SHOWN[1:], faces) + "\n")


def figure_rows(folder):
    """A row for every figure: is it there?"""
    rows = []
    for figure in rows_of("figures.csv"):
        stem = f"figure_{figure['figure']}"
        mine = lambda ending: sorted(p for p in folder.glob(f"{stem}*{ending}")
                                     if p.name == stem + ending or p.name.startswith(stem + "_"))
        why, made = mine(".why"), mine(".svg")
        if why:
            verdict = why[0].read_text(encoding="utf-8").strip()
        else:
            verdict = f"made: {', '.join(p.name for p in made)}" if made else "not made"
        rows.append({**dict.fromkeys(COLUMNS, ""), "table": f"Figure {figure['figure']}", "row": figure["caption"],
                     "verdict": verdict})
    return rows


def summary(args):
    out = Path(args.out)
    folder = out / args.setting
    rows = []
    for name in dict.fromkeys(cell["table"] for cell in rows_of("tables.csv")):
        path = folder / f"{file_name(name)}.csv"
        if path.exists():
            with open(path, newline="", encoding="utf-8") as file:
                rows += list(csv.DictReader(file))
        else:
            rows.append({**dict.fromkeys(COLUMNS, ""), "table": name, "verdict": "not made"})
    figures = figure_rows(folder)
    write_csv(out / "summary.csv", rows + figures)
    words = [row["verdict"] for row in rows]
    count = lambda *starts: sum(w.startswith(starts) for w in words)
    times = sum("(other hardware)" in w for w in words)
    line = (f"{args.setting} setting: of {len(rows)} numbers {count('agrees')} agree, {count('differs')} differ, {times} are "
            f"run times, {count('not judged', 'not compared')} not judged, {count('not run', 'skipped', 'failed', 'not made', 'not measured')} "
            f"not run; {sum(f['verdict'].startswith('made') for f in figures)} of {len(figures)} figures made")
    faces = [face(row) for row in rows]
    drawn = [[f["table"], f["row"], f["verdict"]] for f in figures]
    head = ["figure", "what", "files"]
    page = f"# The paper's tables and figures\n\n{line}.\n\n{markdown(SHOWN, faces)}\n{markdown(head, drawn)}"
    (out / "summary.md").write_text(page, encoding="utf-8")
    print(text(SHOWN, faces) + "\n\n" + text(head, drawn) + f"\n\n{line}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(required=True)
    for name, action in [("runs", None), ("table", table), ("summary", summary)]:
        sub = commands.add_parser(name)
        sub.set_defaults(action=action)
        if name in ("runs", "table"):
            sub.add_argument("table")
        if name in ("table", "summary"):
            sub.add_argument("--out", required=True)
            sub.add_argument("--setting", choices=["smoke", "quick", "full"], required=True)
    args = parser.parse_args()
    if args.action:
        args.action(args)
    else:
        names = [c["run"] for c in rows_of("tables.csv") if c["table"] == args.table and not c["run"].endswith("_data")]
        print(" ".join(dict.fromkeys(names)))


if __name__ == "__main__":
    main()
