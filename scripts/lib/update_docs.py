#!/usr/bin/env python3
"""Puts the tables and pictures of a setting into docs/reproduction.md. Standard library only.

    update_docs.py --out results --setting full

The page has regions that begin with a line `<!-- table 4 -->` or `<!-- figure E.1 -->` and end with `<!-- end -->`. What is
between is replaced by results/<setting>/table_4.md, or by the pictures of the figure, which are copied to docs/img/paper/: the SVG, or
the PNG if that is smaller. A region whose result is not there stays as it is, and is listed.
"""
import argparse
import csv
import re
import shutil
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LIMIT = 100_000
REGION = re.compile(r"(<!-- (table|figure) ([^>]+?) -->\n)(.*?)(<!-- end -->)", re.DOTALL)


def captions():
    with open(ROOT / "scripts" / "paper" / "figures.csv", newline="", encoding="utf-8") as file:
        return {row["figure"]: row["caption"] for row in csv.DictReader(file)}


def natural(path):
    """n5 comes before n10, 0.1 before 1."""
    return [(float(part), "") if part[:1].isdigit() else (-1.0, part) for part in re.split(r"(\d+(?:\.\d+)?)", path.stem)]


def pictures(folder, figure):
    """The SVG files of a figure: one, or one for each panel, in the order of its list or else by their names."""
    found = [p for p in folder.glob("figure_*.svg")
             if p.stem == f"figure_{figure}" or p.stem.startswith(f"figure_{figure}_")]
    panels = folder / f"figure_{figure}.panels"
    order = panels.read_text(encoding="utf-8").split() if panels.exists() else []
    return sorted(found, key=lambda p: (order.index(p.stem) if p.stem in order else len(order), natural(p)))


def smaller(svg):
    """The picture in the form that weighs less."""
    png = svg.with_name(svg.name[:-4] + ".png")
    return png if png.exists() and png.stat().st_size < svg.stat().st_size else svg


def shown(files, caption):
    """One picture as Markdown; panels side by side."""
    if len(files) == 1:
        return [f"![{caption}](img/paper/{files[0]})"]
    width = 98 // min(4, len(files))
    return [f'<img src="img/paper/{name}" width="{width}%" alt="{caption}">' for name in files]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", required=True)
    parser.add_argument("--setting", choices=["smoke", "quick", "full"], required=True)
    parser.add_argument("--page", default=str(ROOT / "docs" / "reproduction.md"))
    args = parser.parse_args()
    folder, page, names = Path(args.out) / args.setting, Path(args.page), captions()
    images, left, heavy = page.parent / "img" / "paper", [], []

    def replace(match):
        head, kind, name, old, end = match.groups()
        if kind == "table":
            path = folder / f"table_{name.replace(' ', '_')}.md"
            if not path.exists():
                left.append(f"table {name}")
                return match.group(0)
            return f"{head}\nSetting: {args.setting}.\n\n{path.read_text(encoding='utf-8')}\n{end}"
        found = pictures(folder, name)
        if not found:
            left.append(f"figure {name}")
            return match.group(0)
        lines = []
        for svg in found:
            picture = smaller(svg)
            if picture.stat().st_size > LIMIT:
                heavy.append(picture.name)
            images.mkdir(parents=True, exist_ok=True)
            for stale in (images / (svg.name[:-4] + ending) for ending in (".svg", ".png")):
                stale.unlink(missing_ok=True)
            shutil.copyfile(picture, images / picture.name)
            lines.append(picture.name)
        return head + "\n".join(shown(lines, names[name])) + f"\n{end}"

    text = REGION.sub(replace, page.read_text(encoding="utf-8"))
    page.write_text(text, encoding="utf-8")
    if left:
        print(f"kept as they were, for want of results: {', '.join(left)}")
    if heavy:
        sys.exit(f"update_docs.py: over {LIMIT // 1000} kB: {', '.join(heavy)}")


if __name__ == "__main__":
    main()
