"""Run all benches, print a table, keep the marks of this commit; the exit code is 1 if one was missed."""

import argparse
import sys

from bench import (
    accuracy,
    additive,
    certificate,
    choosing,
    cli,
    cluster,
    experiments,
    first_use,
    imaging,
    integral,
    learning,
    many,
    methods,
    page,
    raster,
    studio,
    studio_fits,
)
from bench.keeping import ROOT, keep
from bench.marks import Mark
from bimichi._html import Cell, Table

GROUPS = (
    first_use,
    integral,
    learning,
    certificate,
    many,
    additive,
    choosing,
    accuracy,
    methods,
    imaging,
    cli,
    experiments,
    raster,
    cluster,
    studio,
    studio_fits,
)
BENCHES = [bench for group in GROUPS for bench in group.BENCHES]


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("names", nargs="*", help=f"which to run: {', '.join(b.__name__ for b in BENCHES)}")
    parser.add_argument(
        "--keep", action="store_true", help="keep the marks of this commit, and write the page of the docs"
    )
    options = parser.parse_args()
    unknown = set(options.names) - {bench.__name__ for bench in BENCHES}
    if unknown:
        parser.error(f"no such bench: {', '.join(sorted(unknown))}")
    marks: list[Mark] = []
    for bench in BENCHES:
        if not options.names or bench.__name__ in options.names:
            print(f"{bench.__name__} ...", file=sys.stderr, flush=True)
            marks.extend(bench())
    rows = [[Cell(text) for text in mark.row()] for mark in marks]
    print(Table(["what", "measured", "mark", "", "detail"], rows).to_text())
    if options.keep:
        written = keep(marks)
        print(f"Wrote {', '.join(str(path.relative_to(ROOT)) for path in written)}.", file=sys.stderr)
        if len(written) > 1:
            page.main()
        else:
            print(
                "Sources differ from the commit: not part of the history, and the page is as it was.", file=sys.stderr
            )
    return 0 if all(mark.met for mark in marks) else 1


if __name__ == "__main__":
    sys.exit(main())
