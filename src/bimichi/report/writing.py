"""`write_report`: the page put together, and written."""

import base64
import hashlib
from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

from bimichi.evaluation.comparison import Comparison
from bimichi.report.contents import contents
from bimichi.report.inline import Report
from bimichi.report.inputs import gather
from bimichi.report.markup import Markup, embedded_json, joined, resource, write_page
from bimichi.report.overview import introduction, notices
from bimichi.report.sections import SECTIONS

SCRIPTS = ("planes.js", "integral.js", "maps.js", "readout.js", "report.js")
SKIP = '<a class="skip" href="#maps">Skip to the maps</a>\n'
BUTTON = '<button type="button" id="theme" hidden>Dark</button>\n'


def write_report(
    path: str | PathLike[str],
    model: Any,
    sources: Any,
    *,
    names: Sequence[str] | None = None,
    truth: Any = None,
    ignore: Any = None,
    boxes: Any = None,
    segments: Any = None,
    labels: Mapping[int, bool] | None = None,
    comparison: Comparison | None = None,
    title: str | None = None,
    notes: Mapping[str, str] | None = None,
    n_jobs: int | None = None,
) -> Report:
    """Write one HTML file that shows what a model fused, and explains every pixel of it.

    The file needs no other file and no network. What it shows of a pixel is computed in the page.

    Parameters
    ----------
    path : path
        The file to write; it is replaced only when complete.
    model : FusionRule, Measure, or a fitted estimator that has a measure
        Of up to 12 sources; of up to 64 if its measure is additive.
    sources : ndarray of shape (height, width, n_sources), list of n_sources planes, or Scene
        What to fuse; also an array or a dataset of xarray. NaN is shown as no data. A `Scene` lends names, truth,
        boxes, bags and title, unless given.
    names : sequence of str, optional
        Names of the sources. They must be those of the model, if it has names of its own.
    truth : array-like of shape (height, width), optional
        Targets, as bool, 0/1 or -1/+1, both kinds among the pixels that count; adds scores and ROC.
    ignore : array-like of bool, shape (height, width), optional
        Pixels that are excluded from scoring.
    boxes : array-like of shape (n_boxes, 4), optional
        Boxes (x, y, width, height) to draw, in pixels.
    segments, labels : array-like of int, shape (height, width), and mapping of int to bool, optional
        Bags to draw, and which of them are positive.
    comparison : Comparison, optional
        What `bimichi.compare` returned, to show as a table.
    title : str, optional
        Heading of the page.
    notes : mapping of str to str, optional
        More facts to list, such as names of files.
    n_jobs : int, optional
        Number of threads; all cores by default. The file does not depend on it.

    Returns
    -------
    report : Report
        The file; a notebook shows the page in its cell.

    Notes
    -----
    A source of up to 4,096 distinct values is stored exactly, others to 1/65,534 of their range. Images of more than a
    million pixels are thinned, and the page says so. 640 x 480 pixels of six sources take about 2 MB.
    """
    drawn = {"truth": truth, "ignore": ignore, "boxes": boxes, "segments": segments, "labels": labels}
    shown = {"names": names, "comparison": comparison, "title": title, "notes": notes}
    given = gather(model, sources, **drawn, **shown, n_jobs=n_jobs)
    sections = [section(given) for section in SECTIONS]
    script = "\n".join(map(resource, SCRIPTS))
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    data = f'<script type="application/json" id="data">{embedded_json(contents(given))}</script>'
    content = joined(notices(given), Markup("\n"), *(part for part in sections if part is not None))
    scripts = f"{data}\n<script>{script}</script>\n"
    write_page(path, given.title, introduction(given), content, digest, SKIP, BUTTON, scripts)
    return Report(Path(path))
