"""How to make the model of a studio without it: as a command line, and as Python."""

import shlex
from pathlib import Path
from typing import Any

from bimichi.errors import BimichiError, InvalidInputError
from bimichi.imaging.collecting import SceneCollection, SceneFiles, collect_scenes
from bimichi.imaging.segments import CORE
from bimichi.interactive.learning import Trained
from bimichi.interactive.project import relative_argument, relative_to
from bimichi.interactive.scenes import SceneStore
from bimichi.interactive.workspace import Workspace


def arguments_of(work: Workspace) -> list[str]:
    """Return the sources as `bimichi train` takes them: as the user gave them, or by the folders of their files."""
    store = _store(work)
    for given in (work.arguments, _folders(store.collection)):
        try:
            found = collect_scenes(given, len(given)) if given else None
        except BimichiError:
            continue
        if found is not None and _same_files(work, found):
            return given
    raise InvalidInputError(
        "The images of labelled scenes do not lie in one folder per source, in the order of their names, so that no "
        "command names them. Move the images of each source into a folder of their own, and open them from there."
    )


def _same_files(work: Workspace, found: SceneCollection) -> bool:
    """Whether these hold the labelled images, under the same names and in the same order; there may be more of them."""
    store, drawn = _store(work), work.labels
    own = {scene.name: _resolved(scene.files) for k, scene in enumerate(store.scenes) if drawn[k].shapes}
    others = {scene.name: _resolved(scene) for scene in found.scenes}
    same = [(name, files) for name, files in others.items() if name in own] == list(own.items())
    return same and found.many == store.collection.many


def _resolved(scene: SceneFiles) -> list[Path]:
    return [file.resolve() for file in scene.files]


def _folders(collection: SceneCollection) -> list[str]:
    scenes = collection.scenes
    if not collection.many:
        picks = scenes[0].picks or ((),) * len(scenes[0].files)
        return [
            str(file) + (f"[{','.join(pick)}]" if pick else "")
            for file, pick in zip(scenes[0].files, picks, strict=True)
        ]
    return [str(scenes[0].files[k].parent) for k in range(len(scenes[0].files))]


def options_of(work: Workspace, trained: Trained | None) -> dict[str, Any]:
    """Return the options of `bimichi train`, by name."""
    store, settings = _store(work), work.settings
    auto = trained is not None and trained.auto is not None and trained.task.labels == work.task().labels
    collection, found = store.collection, dict[str, Any]()
    if collection.given is not None:
        found["names"] = ",".join(collection.given)
    found["recipe"] = ",".join(_recipes(work, auto))
    found |= {"align": True} if collection.align else {}
    found |= {"driver": ",".join(collection.drivers)} if collection.drivers else {}
    found |= {"expression": [f"{one.name}: {one.text}" for one in collection.computed]} if collection.computed else {}
    found |= {"bags": "boxes", "target": "target", "negative": "not", "labelled-only": True}
    found |= {"rest": settings.rest} if settings.rest != "negative" else {}
    found |= {"core": ",".join(map(repr, settings.core))} if settings.core != CORE else {}
    if not auto:
        found["objective"] = settings.objective
        found |= {"additivity": settings.additivity} if settings.additivity is not None else {}
        found |= {"polarity": settings.polarity} if settings.polarity != "given" else {}
    return found | {"seed": settings.seed}


def _recipes(work: Workspace, auto: bool) -> list[str]:
    given = _store(work).recipes
    return list(given if auto else work.settings.recipes(given))


def command_line(work: Workspace, labels: Path, model: Path, trained: Trained | None) -> str:
    """Return a command that learns the same model, to the last bit."""
    folder = _folder(work)
    words = ["bimichi", "train", *(relative_argument(one, folder) for one in arguments_of(work))]
    words += ["--boxes", relative_to(labels, folder)]
    for name, value in options_of(work, trained).items():
        for one in value if isinstance(value, list) else [value]:
            words += [f"--{name}"] if one is True else [f"--{name}", str(one)]
    words += ["-o", relative_to(model, folder)]
    return f"cd {shlex.quote(str(folder))}\n{shlex.join(words)}\n"


def python_text(work: Workspace, labels: Path, model: Path, trained: Trained | None) -> str:
    """Return Python that learns the same model, to the last bit."""
    folder, settings, options = _folder(work), work.settings, options_of(work, trained)
    store = _store(work)
    sources = [str(folder / relative_argument(one, folder)) for one in arguments_of(work)]
    opened = [repr(sources)]
    opened += [f"names={list(store.collection.given)!r}"] if store.collection.given is not None else []
    opened += ["align=True"] if store.collection.align else []
    opened += [f"drivers={list(store.collection.drivers)!r}"] if store.collection.drivers else []
    if store.collection.computed:
        opened.append(f"computed=[{', '.join(f'parse_expression({text!r})' for text in options['expression'])}]")
    how = ['bags="boxes"', 'target="target"', 'negative="not"', "labelled_only=True", f"boxes={str(labels)!r}"]
    how += [f"rest={settings.rest!r}"] if "rest" in options else []
    how += [f"core={settings.core!r}"] if "core" in options else []
    auto = "objective" not in options
    how += ["by_pixel=True"] if not auto and settings.objective == "mean" else []
    model_of = f"random_state={settings.seed}, source_names=reader.source_names"
    made = f"bimichi.BiMIChICV({model_of})"
    if not auto:
        chosen = f"{settings.objective!r}, polarity={settings.polarity!r}, additivity={settings.additivity!r}"
        made = f"bimichi.BiMIChI({chosen}, {model_of})"
    return "\n".join(
        [
            "import bimichi",
            "from bimichi.estimators.scenes import fit_scenes, scene_rule",
            "from bimichi.imaging import open_scenes, parse_expression",
            "from bimichi.imaging.bagging import Labelling",
            "from bimichi.imaging.labelling import SceneReader",
            "",
            f"scenes = open_scenes({', '.join(opened)})",
            f"labels = Labelling({', '.join(how)})",
            f"reader = SceneReader(scenes, labels, recipes={_recipes(work, auto)!r})",
            f"model = {made}",
            "fit_scenes(model, reader.scenes)",
            "rule = scene_rule(model, reader.recipes, reader.inputs)",
            f"rule.save({str(model)!r})",
            "",
        ]
    )


def _store(work: Workspace) -> SceneStore:
    if work.store is None:
        raise InvalidInputError("No scenes are open.")
    return work.store


def _folder(work: Workspace) -> Path:
    if work.project is None:
        raise InvalidInputError("The project has no file yet.")
    return work.project.resolve().parent
