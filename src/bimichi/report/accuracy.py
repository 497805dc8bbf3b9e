"""Scores against the truth, ROC curves (of the fused map and of each source alone), and a comparison of methods."""

import numpy as np

from bimichi.errors import InvalidInputError
from bimichi.evaluation.metrics import Scores, scores
from bimichi.explain.results import percent
from bimichi.plotting.curves import roc_points
from bimichi.report.inputs import Material
from bimichi.report.markup import Markup, element
from bimichi.report.wording import section, shown, table

CORNERS = 400
SIDE = 300.0
LEFT, TOP = 44.0, 12.0
TICKS = (0.0, 0.25, 0.5, 0.75, 1.0)

Curve = list[tuple[float, float]]


def score_maps(material: Material) -> list[tuple[str, Scores, Curve]]:
    """Score the fused map first, then each source as it enters the integral; pixels without data do not count."""
    if material.truth is None:
        return []
    skipped = np.isnan(material.integral)
    if material.ignore is not None:
        skipped |= material.ignore
    truth = material.truth[~skipped]
    if not truth.any() or truth.all():
        raise InvalidInputError(
            f"truth has one class only: {int(truth.sum()):,} of the {truth.size:,} pixels that count are targets. "
            "Scores need targets and others; leave truth out."
        )
    limits = (material.rule.low, 1.0)
    maps = [("fused", material.fused, material.rule.output_range)]
    maps += [(name, plane, limits) for name, plane in zip(material.names, material.entered, strict=True)]
    found: list[tuple[str, Scores, Curve]] = []
    for name, plane, limits in maps:
        false_rate, true_rate, _ = roc_points(truth, plane[~skipped], CORNERS)
        curve = list(zip(false_rate.tolist(), true_rate.tolist(), strict=True))
        found.append((name, scores(truth, plane[~skipped], limits), curve))
    return found


def accuracy_section(material: Material) -> Markup | None:
    """Show the table of scores beside the curves."""
    scored = score_maps(material)
    if not scored:
        return None
    first = scored[0][1]
    share = percent(first.share) if first.share >= 0.01 else f"{100 * first.share:.2g} %"
    best = f"F1 is the best over all thresholds; the fused map reaches it at {shown(first.threshold, 3)}."
    note = element("p", f"{first.n:,} pixels are scored; {share} of them are targets. {best}", class_="note")
    caption = element("figcaption", "ROC: true positive rate against false positive rate")
    body = element(
        "div", element("div", _table(scored), note), element("figure", _plot(scored), caption), class_="pair"
    )
    lead = "Scores of the fused map, and of each source alone as it enters the integral."
    return section("scores", "Compared with the truth", body, lead=lead)


def _table(scored: list[tuple[str, Scores, Curve]]) -> Markup:
    rows = []
    for k, (name, one, _) in enumerate(scored):
        line = element("svg", element("line", x1=1, x2=25, y1=5, y2=5), viewBox="0 0 26 10", class_=_line(k))
        numbers = (one.auc, one.average_precision, one.best_f1, one.rmse, one.calibration_error)
        cells = [element("th", line, name, scope="row"), *(element("td", shown(number, 3)) for number in numbers)]
        rows.append(element("tr", *cells, class_="first" if k == 0 else None))
    return table(["Map", "AUC", "AP", "F1", "RMSE", "ECE"], rows, "plain numbers")


def _line(k: int) -> str:
    return "curve fused" if k == 0 else f"curve c{(k - 1) % 6} d{(k - 1) // 6 % 3}"


def _plot(scored: list[tuple[str, Scores, Curve]]) -> Markup:
    def place(x: float, y: float) -> str:
        return f"{LEFT + SIDE * x:.1f},{TOP + SIDE * (1 - y):.1f}"

    grid = []
    for tick in TICKS:
        across, down = LEFT + SIDE * tick, TOP + SIDE * (1 - tick)
        grid += [
            element("line", x1=across, x2=across, y1=TOP, y2=TOP + SIDE, class_="grid"),
            element("line", x1=LEFT, x2=LEFT + SIDE, y1=down, y2=down, class_="grid"),
            element("text", f"{tick:g}", x=across, y=TOP + SIDE + 18, text_anchor="middle"),
            element("text", f"{tick:g}", x=LEFT - 8, y=down + 4, text_anchor="end"),
        ]
    lines = [element("polyline", points=f"{place(0, 0)} {place(1, 1)}", class_="chance")]
    for k, (_, _, curve) in reversed(list(enumerate(scored))):
        lines.append(element("polyline", points=" ".join(place(x, y) for x, y in curve), class_=_line(k)))
    label = f"ROC curves; areas under them: {', '.join(f'{name} {one.auc:.3f}' for name, one, _ in scored)}"
    box = f"0 0 {LEFT + SIDE + 12:g} {TOP + SIDE + 30:g}"
    return element("svg", *grid, *lines, viewBox=box, class_="roc", role="img", aria_label=label)


def comparison_section(material: Material) -> Markup | None:
    """Show the table of a comparison with other methods, if there is one."""
    if material.comparison is None:
        return None
    methods = element("div", Markup(material.comparison.table().to_html()), class_="scroll")
    lead = "Of the methods built on a measure, the best is bold, the second underlined."
    return section("comparison", "Compared with other methods", methods, lead=lead)
