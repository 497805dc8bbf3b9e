"""What the page is sent: the state of a studio, models and maps, as JSON and bytes.

Reports are imported with the first model: the page is served without them.
"""

import struct
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bimichi._files import plain
from bimichi.measures.base import TOLERANCE

if TYPE_CHECKING:
    from bimichi.report.inputs import Material
    from bimichi.studio.learning import Trained

SHOWN = 64
"""Values of a measure that are listed at most, those that training uses most first."""


def map_bytes(number: int, last: int, values: NDArray[np.uint16]) -> bytes:
    """Return a map with its header: the number of the model, width, height, and one more number."""
    height, width = values.shape
    return struct.pack("<4I", number, width, height, last) + np.ascontiguousarray(values, "<u2").tobytes()


def material_of(trained: "Trained", scene: Any) -> "Material":
    """Return what the report would show of this model on a scene."""
    from bimichi.report.inputs import gather

    return gather(trained.rule, scene.sources)


def model_json(trained: "Trained", material: "Material") -> dict[str, Any]:
    """Return a model as the page shows it."""
    from bimichi.report.contents import rule_contents

    rule = trained.rule
    found = {
        "number": trained.number,
        "revision": trained.task.revisions,
        "setting": trained.task.settings.to_json(),
        "J": trained.objective_value,
        "status": trained.status,
        "rule": rule_contents(material)
        | {"output_range": list(rule.output_range), "recipes": list(rule.recipes or ())},
        "inverted": list(rule.inverted),
        "sentences": trained.sentences,
        "notes": trained.notes,
        rule.measure.parts: _listed(material),
        "auto": trained.auto,
        "seconds": trained.seconds,
        "score": trained.score,
    }
    made: dict[str, Any] = plain(found)
    return made


def _listed(material: "Material") -> list[dict[str, Any]]:
    """Return the values of the measure that are shown: sets of sources for and against, value, use, interval."""
    measure, use = material.rule.measure, material.training_use
    codes = np.arange(len(measure.values))
    if use is not None:
        codes = np.argsort(-use.counts, kind="stable")
    listed = []
    for code in codes[:SHOWN].tolist():
        up, down = measure.sets(code)
        one: dict[str, Any] = {
            "code": code,
            "for": list(up),
            "against": list(down),
            "value": float(measure.values[code]),
        }
        if use is not None:
            one |= {"count": int(use.counts[code]), "touched": int(use.touched[code])}
            if measure.parts == "elements":
                low, high = float(use.lower[code]), float(use.upper[code])
                one |= {"lower": low, "upper": high, "open": high - low > TOLERANCE}
        listed.append(one)
    return listed
