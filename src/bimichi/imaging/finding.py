"""Which files arguments mean: files, folders and patterns, and the bands chosen in brackets behind them."""

import glob
import re
import string
import warnings
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path

from bimichi.errors import InvalidInputError
from bimichi.imaging.bands import first_few
from bimichi.imaging.limits import check_file
from bimichi.imaging.opening import is_store

SUFFIXES = (
    *(".jpeg", ".jpg", ".npy", ".png", ".tif", ".tiff"),
    *(".dcm", ".nc", ".nii", ".nii.gz", ".npz", ".zarr"),
)
WILDCARD = re.compile(r"(?:\*|\?|\[[^\]]+\])+")
SELECTION = re.compile(r"(?P<path>.+)\[(?P<bands>[^\[\]]+)\]")


def stem_of(path: Path) -> str:
    """Return the name of a file without its suffix, which may have two parts."""
    return path.name[: -len(".nii.gz")] if path.name.lower().endswith(".nii.gz") else path.stem


def selected_bands(source: str) -> tuple[str, tuple[str, ...]]:
    """Split an argument into a path and the bands chosen in brackets behind it, if there are any."""
    found = SELECTION.fullmatch(source)
    if found is None or Path(source).exists():
        return source, ()
    path = found["path"]
    if not Path(path).exists() and not path.lower().endswith(SUFFIXES):
        return source, ()  # brackets of a pattern
    bands = tuple(part.strip() for part in found["bands"].split(","))
    if not all(bands):
        raise InvalidInputError(f"{source}: name bands by description or number, separated by commas, as in [B3,B8].")
    return path, bands


def existing_path(path: Path) -> Path:
    """Return a path that exists; that it does not is the first thing to say."""
    if not path.exists():
        raise InvalidInputError(f"There is no file or folder {path}. {_nearest(path)}")
    return path


def _nearest(path: Path) -> str:
    """Return a sentence on what is there instead of a path that is not."""
    if str(path) == "-":
        return "Standard input is not read; name a file."
    parent = next((folder for folder in path.parents if folder.exists()), Path())
    if parent != path.parent:
        return f"({parent} exists.) Check the path."
    names = _names_in(parent)
    stems = {Path(name).stem: name for name in names}
    alike = [stems[stem] for stem in get_close_matches(path.stem, stems, 1)]
    where = "The current folder" if parent == Path() else f"The folder {parent}"
    return f"Did you mean {parent / alike[0]}?" if alike else f"{where} has {first_few(names) or 'no files'}."


def _names_in(folder: Path) -> list[str]:
    try:
        return sorted(file.name for file in folder.iterdir() if not file.name.startswith("."))
    except OSError:
        return []


def is_pattern(source: str) -> bool:
    """Whether text has wildcards and is not the name of a file."""
    return WILDCARD.search(source) is not None and not Path(source).exists()


def is_many(source: str) -> bool:
    """Whether an argument is a folder or a pattern, so that it may mean the files of many scenes."""
    if is_store(Path(source)):
        return False
    return Path(source).is_dir() or is_pattern(source)


def files_by_scene(source: str) -> Mapping[str, Path]:
    """Return the files of a folder or a pattern, by scene."""
    if Path(source).is_dir():
        files = [p for p in Path(source).iterdir() if p.name.lower().endswith(SUFFIXES) and not p.name.startswith(".")]
        for file in files:
            if not is_store(file):
                check_file(file)
        pairs = [(stem_of(file), file) for file in sorted(files)]
        what = f"image files ({', '.join(SUFFIXES)})"
    else:
        if "**" in source:
            raise InvalidInputError(f"{source}: ** is not supported; write one * per folder.")
        found = map(Path, sorted(glob.glob(source)))  # noqa: PTH207
        files = [path for path in found if path.is_file() or is_store(path)]
        pairs = [(_matched(source, file), file) for file in files]
        what = "files"
    if not pairs:
        raise InvalidInputError(f"{source} has no {what}. {_instead(source)}")
    by_scene: dict[str, Path] = {}
    for scene, file in pairs:
        if by_scene.setdefault(scene, file) is not file:
            raise InvalidInputError(f"{by_scene[scene]} and {file} both belong to scene {scene!r}; remove one of them.")
    return by_scene


def _instead(source: str) -> str:
    """Return a sentence on what a folder holds instead of images, or that of a pattern instead of what it matches."""
    folder = Path(source)
    if not folder.is_dir():
        folder = folder.parent
        if not folder.is_dir():
            return f"There is no folder {folder}." if not is_pattern(str(folder)) else "Check the pattern."
    names = [name + "/" if (folder / name).is_dir() else name for name in _names_in(folder)]
    return f"The folder {folder} has {first_few(names)}; name the one you mean." if names else f"{folder} is empty."


def warn_if_expanded(files: Sequence[Path]) -> None:
    """Warn if the files of one scene look like two sources of several, as when the shell expands patterns."""
    stems = [stem_of(file) for file in files]
    by_folder = [(file.parent.name, (file.parent.parent / stem_of(file)).as_posix()) for file in files]
    scenes_of = [stem.rstrip(string.ascii_letters).rstrip("_-. ") for stem in stems]
    by_ending = [(stem[len(scene) :], scene) for stem, scene in zip(stems, scenes_of, strict=True)]
    numbered = all(any(map(str.isdigit, scene)) for _, scene in by_ending)  # as scenes are, but seldom sensors
    for pairs, ending in ((by_folder, ""), (by_ending, by_ending[0][0])):
        sources, scenes = ({pair[k] for pair in pairs} for k in (0, 1))
        whole = len(sources) * len(scenes) == len(set(pairs)) == len(files)
        if whole and min(len(sources), len(scenes)) > 1 and (numbered or not ending) and all(map(all, pairs)):
            one_place = len({file.parent for file in files}) <= len(sources)
            pattern = (files[0].parent / f"*{ending}{files[0].suffix}").as_posix()
            example = f", as in '{pattern}'," if one_place else ","
            warnings.warn(
                f"{len(files)} files, {first_few([str(file) for file in files])}, are taken for {len(files)} sources "
                f"of one scene, but look like {len(scenes)} scenes of {len(sources)} sources. Quote patterns"
                f"{example} or the shell replaces each by all its files.",
                stacklevel=2,
            )
            return


def _matched(pattern: str, file: Path) -> str:
    """What the wildcards of a pattern match in a file's path, without its suffix."""
    fixed = [re.escape(text) for text in WILDCARD.split(Path(pattern).with_suffix("").as_posix())]
    found = re.fullmatch("([^/]*)".join(fixed), file.with_suffix("").as_posix())
    return "_".join(text for text in found.groups() if text) if found else file.stem


def name_of_source(source: str) -> str:
    """Return the name of a source by its file or folder, or by the fixed text of its pattern."""
    if not is_many(source):
        return stem_of(Path(source))
    if Path(source).is_dir():
        return Path(source).resolve().name
    parts = (Path(source).stem, *reversed(Path(source).parent.parts))
    fixed = (WILDCARD.sub("", part).strip("_-. ") for part in parts)
    return next(filter(None, fixed), "source")
