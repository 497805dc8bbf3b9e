"""`write_index`: the page that leads to the reports of many scenes."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from urllib.parse import quote

import numpy as np

from bimichi._markup import picture
from bimichi.evaluation.metrics import Scores
from bimichi.report.markup import Markup, element, joined, write_page
from bimichi.report.wording import section, shown, table


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
    parts = [_scenes(written, folder)] if written else []
    parts += [_scores(written, folder)] if any(entry.scores for entry in written) else []
    if failed:
        rows = [element("div", element("dt", entry.name), element("dd", entry.note)) for entry in failed]
        parts.append(section("failed", "Not reported", element("dl", *rows, class_="facts notice")))
    write_page(path, title, _introduction(written, failed), joined(*parts))


def _introduction(written: Sequence[IndexEntry], failed: Sequence[IndexEntry]) -> str:
    total = len(written) + len(failed)
    says = f"{total:,} scene{'' if total == 1 else 's'}"
    says += f", of which {len(failed):,} could not be reported." if failed else "."
    scored = [entry.scores for entry in written if entry.scores]
    if scored:
        auc, precision = (float(np.mean(numbers)) for numbers in zip(*(one[:2] for one in scored), strict=True))
        says += f" On average over {len(scored):,} with truth, AUC is {shown(auc, 3)} and AP {shown(precision, 3)}."
    return says


def _link(entry: IndexEntry, folder: Path, *content: str) -> Markup:
    assert entry.page is not None  # only those with a page are linked
    return element("a", *content, href=quote(os.fsencode(os.path.relpath(entry.page, folder))))


def _scenes(entries: Sequence[IndexEntry], folder: Path) -> Markup:
    cards = []
    for entry in entries:
        height, width = entry.shape or (0, 0)
        shown_map = element("span", class_="picture")
        if entry.picture:
            shown_map = picture(entry.picture, f"Fused map of {entry.name}")
        facts = [f"{width:,} × {height:,} pixels"] if entry.shape else []
        if entry.scores:
            facts.append(f"AUC {shown(entry.scores.auc, 3)}, AP {shown(entry.scores.average_precision, 3)}")
        elif entry.note:
            facts.append(entry.note)
        lines = [element("span", fact) for fact in facts]
        cards.append(element("li", _link(entry, folder, shown_map, element("b", entry.name)), *lines))
    lead = "The fused map of each scene, blue −1 to red +1, grey without data. A scene leads to its report."
    return section("scenes", "Scenes", element("ul", *cards, class_="scenes"), lead=lead)


def _scores(entries: Sequence[IndexEntry], folder: Path) -> Markup:
    scored = sorted(((one.scores, one) for one in entries if one.scores), key=lambda pair: pair[0].auc)
    rows = []
    for scores, entry in scored:
        numbers = [shown(number, 3) for number in (scores.auc, scores.average_precision, scores.best_f1, scores.rmse)]
        cells = [element("td", text) for text in (*numbers, f"{100 * scores.share:.2g} %")]
        rows.append(element("tr", element("th", _link(entry, folder, entry.name), scope="row"), *cells))
    head = ["Scene", "AUC", "AP", "F1", "RMSE", "Targets"]
    lead = "Scores of the fused maps against the truth, the lowest AUC first. Targets is their share of the pixels."
    return section("scores", "Scores", table(head, rows, "plain numbers", "Scores of all scenes"), lead=lead)
