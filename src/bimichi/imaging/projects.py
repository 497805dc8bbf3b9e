"""One project file, `bimichi.toml`: the sources, labels and options that commands would otherwise repeat.

It is data alone: nothing in it is executed, and functions cannot be named in it.
"""

import json
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from os import PathLike
from pathlib import Path
from typing import Any

from bimichi._files import atomic_write
from bimichi.errors import InvalidInputError
from bimichi.imaging.band_maths import parse_expression
from bimichi.imaging.bands import first_few

FILE_NAME = "bimichi.toml"
SIZE_LIMIT = 2**20  # bytes
SOURCE_KEYS = ("path", "bands", "name", "names", "recipe", "recipes")


@dataclass(frozen=True)
class ProjectSource:
    """One source, or the bands of one file: a path or pattern relative to the project file, and what is made of it."""

    path: str
    bands: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    recipes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Project:
    """What a project file holds; paths in it are relative to `folder`.

    `expressions` are as `parse_expression` reads them, `labels` are options about bags and targets, by name, and
    `commands` those of single commands.
    """

    sources: Sequence[ProjectSource]
    expressions: Sequence[str] = ()
    labels: Mapping[str, Any] = field(default_factory=dict)
    commands: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    folder: Path = Path()

    def arguments(self) -> list[str]:
        """Return the sources as they are given on the command line."""
        return [
            self.located(source.path) + (f"[{','.join(source.bands)}]" if source.bands else "")
            for source in self.sources
        ]

    def names(self) -> list[str] | None:
        """Return the names of the sources in their order, None if the file gives none."""
        return self._each([source.names for source in self.sources], "name")

    def recipes(self) -> list[str] | None:
        """Return the recipes of the sources in their order, None if the file gives none."""
        return self._each([source.recipes for source in self.sources], "recipe")

    def located(self, path: str) -> str:
        """Return a path or pattern of the file, relative to where the program runs."""
        return str(self.folder / path)

    def _each(self, given: list[tuple[str, ...]], what: str) -> list[str] | None:
        missing = [source.path for source, values in zip(self.sources, given, strict=True) if not values]
        if missing and len(missing) < len(given):
            raise InvalidInputError(
                f"Source {missing[0]!r} of the project file has no {what}, but others have; give each one, or none."
            )
        return None if missing else [value for values in given for value in values]

    def to_toml(self, comments: Iterable[str] = ()) -> str:
        """Return the text of the file, after lines of comments."""
        lines = [f"# {' '.join(line.splitlines())}".rstrip() for line in comments]
        if self.expressions:
            lines += ["", f"expressions = {_toml(list(self.expressions))}"]
        for source in self.sources:
            lines += ["", "[[sources]]", f"path = {_toml(source.path)}"]
            lines += [f"bands = {_toml(list(source.bands))}"] if source.bands else []
            for key, values in (("name", source.names), ("recipe", source.recipes)):
                if values:
                    lines.append(
                        f"{key} = {_toml(values[0])}" if len(values) == 1 else f"{key}s = {_toml(list(values))}"
                    )
        for title, options in {"labels": self.labels, **self.commands}.items():
            if options:
                lines += ["", f"[{title}]", *(f"{key} = {_toml(value)}" for key, value in options.items())]
        return "\n".join(lines) + "\n"


def read_project(path: str | PathLike[str]) -> Project:
    """Read a project file, or the `bimichi.toml` of a folder; commands check options beyond their form."""
    file = Path(path) / FILE_NAME if Path(path).is_dir() else Path(path)
    tables = _tables(file)
    entries = tables.pop("sources", [])
    if not isinstance(entries, list) or not entries or not all(isinstance(entry, dict) for entry in entries):
        raise InvalidInputError(f"{file} must have one table [[sources]] per source, each with a path.")
    expressions = _texts(tables.pop("expressions", []), file, "expressions")
    for text in expressions:
        parse_expression(text)
    stray = [key for key, table in tables.items() if not isinstance(table, dict)]
    if stray:
        raise unknown_key(file, stray[0], ["sources", "expressions", "labels"], "")
    for title, table in tables.items():
        for key, value in table.items():
            parts = value if isinstance(value, list) else [value]
            if not all(isinstance(part, str | int | float) for part in parts):
                kinds = first_few(sorted({type(part).__name__ for part in parts}))
                rule = "must be text, a number, true or false"
                raise InvalidInputError(f"{key} in [{title}] of {file} {rule}, got {kinds}.")
    sources = tuple(_source(file, k + 1, entry) for k, entry in enumerate(entries))
    return Project(sources, expressions, tables.pop("labels", {}), tables, file.parent)


def write_project(path: str | PathLike[str], project: Project, comments: Iterable[str] = ()) -> None:
    """Write a project file, whole or not at all."""
    text = project.to_toml(comments)
    atomic_write(path, lambda file: file.write(text.encode()))


def unknown_key(file: Path, key: str, known: Iterable[str], where: str) -> InvalidInputError:
    """Return the error for a key that is not among those known; the nearest comes first."""
    choices = list(known)
    near = get_close_matches(key, choices, 1, 0.5)
    hint = f" Did you mean {near[0]!r}?" if near else ""
    section = f" in [{where}]" if where else ""
    listed = ", ".join(choices) or "none"
    return InvalidInputError(f"{file} has an unknown key {key[:80]!r}{section}.{hint} Known keys: {listed}.")


def _tables(file: Path) -> dict[str, Any]:
    try:
        if not file.is_file():
            reason = "it is not a regular file" if file.exists() else "there is no such file; `bimichi init` writes one"
            raise InvalidInputError(f"Cannot read the project file {file}: {reason}.")
        if file.stat().st_size > SIZE_LIMIT:
            raise InvalidInputError(f"Cannot read the project file {file}: it is larger than {SIZE_LIMIT:,} bytes.")
        return tomllib.loads(file.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InvalidInputError(
            f"Cannot read the project file {file}: it is not valid TOML ({str(error)[:200]})."
        ) from error
    except OSError as error:
        raise InvalidInputError(f"Cannot read the project file {file}: {error.strerror or error}.") from error


def _source(file: Path, number: int, entry: Mapping[str, Any]) -> ProjectSource:
    for key in entry:
        if key not in SOURCE_KEYS:
            raise unknown_key(file, key, SOURCE_KEYS, "[sources]")
    path = entry.get("path")
    if not isinstance(path, str) or not path.strip() or "\0" in path:
        raise InvalidInputError(f"Source {number} of {file} needs a path: a file, a folder or a pattern, got {path!r}.")
    for one, several in (("name", "names"), ("recipe", "recipes")):
        if one in entry and several in entry:
            raise InvalidInputError(f"Source {number} of {file} has both {one} and {several}; keep one of them.")
    bands = _texts(entry.get("bands", []), file, "bands")
    names = _texts(entry.get("names", entry.get("name", [])), file, "names")
    recipes = _texts(entry.get("recipes", entry.get("recipe", [])), file, "recipes")
    for recipe in recipes:
        if ":" in recipe:
            raise InvalidInputError(
                f"{file} names the recipe {recipe[:80]!r} by an import path, which a project file may not do, as it "
                "would run code. Give it on the command line, with --recipe."
            )
    n_made = max(len(bands), len(names))
    if len(recipes) == 1 and n_made > 1:
        recipes = recipes * n_made
    return ProjectSource(path, bands, names, recipes)


def _texts(value: Any, file: Path, key: str) -> tuple[str, ...]:
    listed = [value] if isinstance(value, str) else value
    if not isinstance(listed, list) or not all(isinstance(text, str) and text.strip() for text in listed):
        raise InvalidInputError(f"{key} in {file} must be text, or a list of texts, got {str(value)[:80]!r}.")
    if key != "expressions" and any("," in text for text in listed if key != "recipes"):
        raise InvalidInputError(f'{key} in {file} must not hold commas; write a list, as in ["a", "b"].')
    return tuple(listed)


def _toml(value: Any) -> str:
    """Write a value; texts of TOML are those of JSON, but for one character."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
