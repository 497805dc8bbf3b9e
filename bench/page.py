"""Write docs/performance.md from bench/history: ``python -m bench.page``. `make bench` does so after measuring."""

import sys
from pathlib import Path

import matplotlib as mpl

from bench.keeping import ROOT, Run, history
from bench.marks import Mark
from bimichi._files import atomic_write

PAGE = ROOT / "docs" / "performance.md"
PICTURE = ROOT / "docs" / "images" / "marks.svg"
COLUMNS, PANEL = 3, (3.4, 1.7)
KINDS = {"speed": "How fast", "size": "How big", "accuracy": "How accurate"}
HEAD = """# How fast, how big, how accurate

<!-- Written by `make bench` (`python -m bench.page`) from bench/history; do not edit. -->

Each mark is measured by `make bench`, which fails if one is beyond its limit; `python -m bench NAME` measures some of
them. Speeds are ratios within one run where they can be, so that they hold on other machines. What each one does is in
`bench/`.

Measured at version {version}, commit {commit}, on {machine}.
"""
OVER_TIME = """
## Over versions

Each panel is a mark, from the oldest commit in `bench/history` to the newest; the dashed line is its limit.
Machines may differ from commit to commit, as each file there says.

![Marks over versions](images/marks.svg)
"""


def page(runs: list[Run]) -> str:
    """The page of the newest run."""
    now = runs[-1]
    parts = [HEAD.format(**vars(now))]
    for kind, title in KINDS.items():
        found = {name: mark for name, mark in now.marks.items() if mark.kind == kind}
        if found:
            lines = ["| | measured | limit | |", "|---|---:|---:|---|", *map(_line, found, found.values())]
            parts.append(f"\n## {title}\n\n" + "\n".join(lines) + "\n")
    return "".join([*parts, OVER_TIME])


def _line(name: str, mark: Mark) -> str:
    _, measured, limit, met, detail = mark.row()
    missed = "" if mark.met else f"**{met}** "
    return f"| {_text(name)} | {measured.strip()} | {limit} | {missed}{_text(detail)} |"


def _text(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "&lt;")


def picture(runs: list[Run], path: Path) -> None:
    """Draw every mark of the newest run over all runs; the same bytes for the same marks."""
    mpl.use("agg")
    from matplotlib.figure import Figure

    marks = runs[-1].marks
    rows = -(-len(marks) // COLUMNS)
    with mpl.rc_context({"svg.hashsalt": "bimichi", "font.size": 6.5, "svg.fonttype": "none"}):
        figure = Figure(figsize=(COLUMNS * PANEL[0], rows * PANEL[1]), layout="constrained")
        for ax, (name, mark) in zip(figure.subplots(rows, COLUMNS, squeeze=False).flat, marks.items(), strict=False):
            points = [(k, run.marks[name].value) for k, run in enumerate(runs) if name in run.marks]
            ax.plot(*zip(*points, strict=True), marker="o", markersize=3, color="#2166ac", linewidth=1)
            ax.axhline(mark.limit, color="#b2182b", linestyle="--", linewidth=0.8)
            ax.set_title(f"{_short(name)}\n[{mark.unit}]" if mark.unit else _short(name), loc="left", fontsize=6.5)
            ax.set_xticks(range(len(runs)), [run.version if len(runs) > 4 else run.label for run in runs])
            ax.set_xlim(-0.5, len(runs) - 0.5)
            ax.spines[["top", "right"]].set_visible(False)
        for ax in figure.axes[len(marks) :]:
            ax.set_visible(False)
        path.parent.mkdir(parents=True, exist_ok=True)
        atomic_write(path, lambda file: figure.savefig(file, format="svg", metadata={"Date": None}))


def _short(name: str) -> str:
    return name if len(name) <= 62 else f"{name[:60]} …"


def main() -> int:
    runs = history()
    if not runs:
        print("bench/history is empty: run make bench on a commit without changes first.", file=sys.stderr)
        return 1
    text = page(runs)
    atomic_write(PAGE, lambda file: file.write(text.encode()))
    picture(runs, PICTURE)
    print(f"Wrote {PAGE.relative_to(ROOT)} and {PICTURE.relative_to(ROOT)}, from {len(runs)} runs.", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
