"""Run all benches, print a table, save it as JSON; the exit code is 1 if a mark was missed."""

import argparse
import json
import platform
import sys
from dataclasses import asdict
from pathlib import Path

from bench import (
    additive,
    certificate,
    choosing,
    cli,
    cluster,
    experiments,
    imaging,
    integral,
    learning,
    many,
    methods,
    raster,
    studio,
    studio_fits,
)
from bench.marks import Mark
from bimichi import __version__
from bimichi._files import atomic_write
from bimichi._tables import Cell, Table
from bimichi.integral.planes import check_n_jobs

GROUPS = (
    integral,
    learning,
    certificate,
    many,
    additive,
    choosing,
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
    parser.add_argument("--save", help="where to write the marks as JSON")
    options = parser.parse_args()
    unknown = set(options.names) - {bench.__name__ for bench in BENCHES}
    if unknown:
        parser.error(f"no such bench: {', '.join(sorted(unknown))}")
    if options.save:
        Path(options.save).parent.mkdir(parents=True, exist_ok=True)
    marks: list[Mark] = []
    for bench in BENCHES:
        if not options.names or bench.__name__ in options.names:
            print(f"{bench.__name__} ...", file=sys.stderr, flush=True)
            marks.extend(bench())
    rows = [[Cell(text) for text in mark.row()] for mark in marks]
    print(Table(["what", "measured", "mark", "", "detail"], rows).to_text())
    if options.save:
        report = {
            "bimichi": __version__,
            "python": platform.python_version(),
            "cores": check_n_jobs(None),
            "marks": [asdict(mark) | {"met": mark.met} for mark in marks],
        }
        atomic_write(options.save, lambda file: file.write(json.dumps(report, indent=1).encode()))
    return 0 if all(mark.met for mark in marks) else 1


if __name__ == "__main__":
    sys.exit(main())
