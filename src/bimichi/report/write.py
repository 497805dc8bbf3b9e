"""`write_report` and `write_index`: pages put together, and written."""

import base64
import hashlib
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from os import PathLike
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np

from bimichi import _html
from bimichi._colours import thumbnail as thumbnail
from bimichi._files import atomic_write
from bimichi._html import decimal, render
from bimichi.evaluate.comparison import Comparison
from bimichi.evaluate.metrics import Scores
from bimichi.report.contents import contents
from bimichi.report.inputs import gather
from bimichi.report.sections import SECTIONS, introduction, notices

INLINE = 25_000_000
"""Bytes of the largest report that is copied into a notebook."""


@dataclass(frozen=True)
class Report:
    """The file of a report; as the last line of a notebook's cell, the page itself.

    Attributes
    ----------
    path : Path
        The file.
    """

    path: Path

    def _repr_html_(self) -> str:
        title = f"Report {self.path}"
        try:
            size = self.path.stat().st_size
            if size > INLINE:
                note = f"It has {size / 1e6:.0f} MB, too much for a notebook: open the file in a browser."
                return _html.view(title, note=note)
            page = self.path.read_text(encoding="utf-8", errors="replace")
        except OSError as error:
            return _html.view(title, note=f"It cannot be read any more: {error.strerror}.")
        return _html.view("", _html.frame(title, page))


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
    told = {"names": names, "comparison": comparison, "title": title, "notes": notes}
    material = gather(model, sources, **drawn, **told, n_jobs=n_jobs)
    sections = [section(material) for section in SECTIONS]
    _write_page(
        path,
        "report.html",
        script=script_text(),
        title=material.title,
        introduction=introduction(material),
        notices=notices(material),
        sections=[section for section in sections if section is not None],
        data=contents(material),
    )
    return Report(Path(path))


@dataclass(frozen=True)
class IndexEntry:
    """One scene on the index page.

    Attributes
    ----------
    name : str
        Name of the scene.
    page : path, optional
        Its report; None if it could not be written.
    picture : str
        Its fused map as a data URI, as `bimichi.report.thumbnail` returns it.
    shape : (int, int), optional
        Height and width.
    scores : Scores, optional
        Of the fused map against the truth, if that is given.
    note : str
        Why there are no scores; if there is no page, why not.
    """

    name: str
    page: Path | None = None
    picture: str = ""
    shape: tuple[int, int] | None = None
    scores: Scores | None = None
    note: str = ""


def write_index(path: str | PathLike[str], entries: Sequence[IndexEntry], title: str = "Fusion reports") -> None:
    """Write the index page of the reports of many scenes: thumbnails, scores and links, and what failed and why.

    Parameters
    ----------
    path : path
        The file to write; it is replaced only when complete. Links are relative to its folder.
    entries : sequence of IndexEntry
        The scenes, in the order to show.
    title : str
        Heading of the page.
    """
    folder = Path(path).parent
    written = [entry for entry in entries if entry.page is not None]
    failed = [entry for entry in entries if entry.page is None]
    scored = sorted((entry.scores.auc, k) for k, entry in enumerate(written) if entry.scores)

    def link(entry: IndexEntry) -> str:
        assert entry.page is not None  # only those with a page are linked
        return quote(os.fsencode(os.path.relpath(entry.page, folder)))

    _write_page(
        path,
        "index.html",
        title=title,
        introduction=_introduction(written, failed),
        written=written,
        scored=[written[k] for _, k in scored],
        failed=failed,
        link=link,
    )


def _introduction(written: Sequence[IndexEntry], failed: Sequence[IndexEntry]) -> str:
    total = len(written) + len(failed)
    says = f"{total:,} scene{'' if total == 1 else 's'}"
    says += f", of which {len(failed):,} could not be reported." if failed else "."
    scored = [entry.scores for entry in written if entry.scores]
    if scored:
        auc, precision = (float(np.mean(numbers)) for numbers in zip(*(scores[:2] for scores in scored), strict=True))
        says += f" On average over {len(scored):,} with truth, AUC is {decimal(auc, 3)} and AP {decimal(precision, 3)}."
    return says


def _write_page(path: str | PathLike[str], template: str, *, script: str = "", **values: Any) -> None:
    """Write a page, which replaces the file only when complete; it may run the script, by its hash, and no other."""
    from markupsafe import Markup

    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() if script else ""
    style = Markup(_resource("report.css"))
    page = render(template, style=style, script=Markup(script), digest=digest, **values)
    atomic_write(path, lambda file: file.write(page.encode(errors="replace")))  # names of files may be no valid text


def _resource(name: str) -> str:
    """Return the text of a file of this package."""
    return files("bimichi.report").joinpath(name).read_text(encoding="utf-8")


IMPORT = re.compile(r'^import \{\s*\w+(?:,\s*\w+)*,?\s*\} from "\./(\w+\.js)";\n', re.MULTILINE)
EXPORT = re.compile(r"^export (?=(?:async function|function|class|const)\b)", re.MULTILINE)


def script_text(entry: str = "report.js") -> str:
    """Return a module of this package and all that it imports as one module, each after those that it imports.

    Names keep their spelling, so that no two modules may define the same one, and none may be imported as another.
    """
    modules: dict[str, str] = {}
    _collect(entry, modules)
    return "\n".join(EXPORT.sub("", IMPORT.sub("", text)) for text in modules.values())


def _collect(name: str, modules: dict[str, str]) -> None:
    text = files("bimichi.report").joinpath(name).read_text(encoding="utf-8")
    for imported in IMPORT.findall(text):
        if imported not in modules:
            _collect(imported, modules)
    modules[name] = text
