"""Experiments on drawn scenes of other fields: floods from radar and optical images, lesions from MR contrasts."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from bimichi import methods as estimators
from bimichi._checks import check_choice, check_integer
from bimichi._html import Table
from bimichi.datasets import BrainImages, FloodImages, draw_flood, draw_lesions
from bimichi.datasets.folders import write_project_of
from bimichi.evaluate.comparison import Comparison, Result
from bimichi.evaluate.engine import compare
from bimichi.evaluate.study import shows_both, write_figure, write_json, write_text
from bimichi.methods.base import Fusion
from bimichi.paper.figures import scene_panels
from bimichi.plot import plot_maps
from bimichi.scenes.annotations import ImageAnnotations
from bimichi.scenes.scene import Scene
from bimichi.scenes.shapes import boxes_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Images = FloodImages | BrainImages


class Field(NamedTuple):
    """An experiment: its title, the function that draws its images, and its labels in words."""

    title: str
    draw: Callable[..., Images]
    labels: str
    target: str = ""
    """The option that names the class of targets in images of the truth, if they have several."""

    @property
    def commands(self) -> str:
        """The commands that learn from the written images."""
        return (
            "bimichi train --project images -o model.json\n"
            "bimichi fuse model.json --project images -o fused\n"
            f"bimichi report model.json --project images --truth images/truth {self.target}-o reports"
        )


FIELDS = {
    "flood": Field(
        "Flood from radar and optical images",
        draw_flood,
        "superpixels that a hand-drawn outline of the flood touches are positive",
        "--target 1 ",
    ),
    "lesions": Field(
        "Lesions from four MR contrasts", draw_lesions, "superpixels that a box around a lesion touches are positive"
    ),
}


@dataclass(frozen=True)
class FieldResult:
    """The result of `run_field`: the images drawn, the scenes scored on, all methods, and the seconds they took."""

    field: str
    images: Sequence[Images]
    train: Sequence[str]
    test: Sequence[Scene]
    comparison: Comparison
    seconds: float

    def table(self) -> Table:
        """Return the mean scores over the test scenes."""
        return self.comparison.table()

    def best_source(self) -> Result:
        """Return the single source, as it is or inverted, of largest mean average precision."""
        ran = [result for result in self.comparison.results if result.scores]
        return max((result for result in ran if isinstance(result.model, estimators.SignedSource)), key=_precision)

    def best_fusion(self) -> Result:
        """Return the method of largest mean average precision among those that learn from labels of bags."""
        learned = [result for result in self.comparison.results if result.scores and result.model.needs == "bags"]
        return max(learned, key=_precision)

    def verdict(self) -> str:
        """Return sentences that compare the best fusion and `auto` with the best source and labels of pixels."""
        said = [
            f"The best single source is {_scores_in_words(self.best_source())}.",
            f"The best fusion learned from labels of bags is {_scores_in_words(self.best_fusion())}.",
        ]
        ran = {result.name: result for result in self.comparison.results if result.scores}
        for name, why in ((AUTO, "which chooses its setting on scenes it left out"), (BOOSTING, "for comparison")):
            if name in ran and ran[name] is not self.best_fusion():
                said.append(f"{name}, {why}: AUC {ran[name].mean('auc'):.3f}, AP {_precision(ran[name]):.3f}.")
        return " ".join(said)

    def scene_figure(self) -> "Figure":
        """Draw the images of the first test scene, its truth, and its labelled bags."""
        scene = self.test[0]
        drawn = next(images for images in self.images if images.name == scene.name)
        if isinstance(drawn, BrainImages):
            shown: dict[str, Any] = dict(drawn.contrasts)
        else:
            shown = {name: drawn.radar[..., k].clip(-28, 0) for k, name in enumerate(("VV", "VH"))}
            shown |= {"Optical, natural colours": drawn.rgb, "Water in earlier years": drawn.occurrence}
        shown["Truth"] = scene.truth
        width, n_rows = 2.9 * min(len(shown) + 1, 3), -(-(len(shown) + 1) // 3)
        size = (width, (2.9 * scene.shape[0] / scene.shape[1] + 0.35) * n_rows)
        return scene_panels(scene, shown, scene.rgb, 3, size)[0]

    def figure(self) -> "Figure":
        """Draw the map of every method on the first test scene."""
        maps = self.comparison.maps()
        return plot_maps({name: plane for name, plane in maps.items() if not name.endswith("inverted")})

    def to_markdown(self) -> str:
        """Write the table as Markdown, with notes on how to read it and the commands for the files."""
        about = FIELDS[self.field]
        parts = [
            f"# {about.title}",
            self.table().to_markdown(),
            self.verdict(),
            f"Learned from {len(self.train)} drawn scenes ({', '.join(self.train)}), scored on {len(self.test)} others "
            f"({', '.join(scene.name for scene in self.test)}), on pixels where all images have data. Labels of bags: "
            f"{about.labels}. Boosting and both QPs learn from the truth of every pixel. Among methods built on a "
            "measure, the best score is bold, the second best in italics.",
            "The images are in the folder `images`; the same is learned from files by:",
            f"```sh\n{about.commands}\n```",
        ]
        return "\n\n".join(parts)

    def to_dict(self) -> dict[str, Any]:
        """Return the numbers as plain data."""
        methods = {
            result.name: {"scores": [score._asdict() for score in result.scores], "problem": result.problem}
            | {name: getattr(result, name) for name in ("fit_seconds", "fuse_seconds")}
            for result in self.comparison.results
        }
        scenes = {"train": list(self.train), "test": [scene.name for scene in self.test]}
        sources = list(self.test[0].source_names)
        return {"experiment": self.field, **scenes, "sources": sources, "seconds": self.seconds, "methods": methods}

    def write(self, folder: Path) -> list[Path]:
        """Write images, figures, tables, a report and, last, results.json into a folder; returns their paths."""
        best = self.best_fusion()
        best.model.report(folder / "report.html", self.test[0], comparison=self.comparison)
        return [
            *(path for images in self.images for path in images.write(folder / "images")),
            *write_project_of(folder / "images", self.field, _lesion_boxes(self.images)),
            write_figure(folder / "scene.png", self.scene_figure()),
            write_figure(folder / "maps.png", self.figure()),
            folder / "report.html",
            write_text(folder / "table.tex", self.table().to_latex()),
            write_text(folder / "results.md", self.to_markdown()),
            write_json(folder / "results.json", self.to_dict()),
        ]


AUTO, BOOSTING = "Bi-MIChI auto", "gradient boosting, pixel labels"


def run_field(
    field: str,
    n_train: int = 4,
    n_test: int = 4,
    random_state: int = 0,
    n_jobs: int | None = None,
    verbose: int = 0,
    leave_out: Sequence[str] = (),
    n_segments: int = 300,
    **drawing: Any,
) -> FieldResult:
    """Learn from some drawn scenes of a field, and score on others.

    Parameters
    ----------
    field : {"flood", "lesions"}
        See `bimichi.datasets.flood` and `lesions`.
    n_train, n_test : int, default=4
        How many scenes.
    random_state : int, default=0
        Seed of all methods; scenes have the seeds that follow it.
    n_jobs, verbose
        As in `bimichi.compare`.
    leave_out : sequence of str, optional
        Names of methods that are not run.
    n_segments, **drawing
        As in `bimichi.datasets.flood` or `lesions`.
    """
    check_choice(field, "field", tuple(FIELDS))
    for name, number in (("n_train", n_train), ("n_test", n_test)):
        check_integer(number, name)
    start = time.perf_counter()
    images = [FIELDS[field].draw(random_state=random_state + k, **drawing) for k in range(n_train + n_test)]
    scenes = [drawn.scene(n_segments) for drawn in images]
    train, test = scenes[:n_train], scenes[n_train:]
    scored = [scene for scene in test if shows_both(scene)] or test
    methods = field_methods(train[0].source_names, random_state)
    kept = {name: method for name, method in methods.items() if name not in leave_out}
    comparison = compare(kept, train, scored, n_jobs=n_jobs, keep_maps=True, verbose=verbose)
    names = [scene.name for scene in train]
    return FieldResult(field, images, names, scored, comparison, time.perf_counter() - start)


def field_methods(source_names: Sequence[str], random_state: int = 0) -> Mapping[str, Fusion]:
    """Return what is compared: single sources, averages, labels of every pixel, measures, and Bi-MIChI."""
    names = list(source_names)
    options: dict[str, Any] = {"source_names": names, "random_state": random_state}
    methods: dict[str, Fusion] = {"empty map": estimators.ConstantFusion(bipolar_input=True)}
    for k, name in enumerate(names):
        methods[f"source {name}"] = estimators.SignedSource(source=k)
        methods[f"source {name}, inverted"] = estimators.SignedSource(source=k, sign=-1)
    methods["mean"] = estimators.MeanFusion(bipolar_input=True)
    methods[BOOSTING] = estimators.GradientBoosting(random_state=random_state)
    methods["CI-QP"] = estimators.ChoquetQP(source_names=names, bipolar_input=True)
    methods["bi-capacity QP"] = estimators.BiCapacityQP(source_names=names)
    methods["MICI min-max"] = estimators.MICI("min-max", bipolar_input=True, **options)
    methods["MICI-BFM"] = estimators.BinaryMICI(source_names=names, bipolar_input=True)
    for objective, title in (("bipolar", "objective 1"), ("magnitude", "objective 2"), ("mean", "mean")):
        methods[f"Bi-MIChI ({title}), polarity learned"] = estimators.BiMIChI(objective, polarity="learn", **options)
    methods[AUTO] = estimators.BiMIChICV(**options)
    return methods


def _lesion_boxes(images: Sequence[Images]) -> dict[str | None, ImageAnnotations]:
    """Return the boxes around lesions by image; floods are outlined instead."""
    boxes = {brain.name: boxes_of(brain.lesions) for brain in images if isinstance(brain, BrainImages)}
    return {name: ImageAnnotations(around, ["lesion"] * len(around)) for name, around in boxes.items()}


def _precision(result: Result) -> float:
    return result.mean("average_precision")


def _scores_in_words(result: Result) -> str:
    return f"{result.name}, AUC {result.mean('auc'):.3f} and AP {_precision(result):.3f}"
