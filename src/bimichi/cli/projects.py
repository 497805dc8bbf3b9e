"""`--project`: a project file gives the sources, labels and options that the command line leaves out."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from bimichi.errors import InvalidInputError
from bimichi.imaging.projects import FILE_NAME, Project, read_project, unknown_key

ONLY_TYPED = ("output", "project", "trust_recipes", "driver", "force", "help")
"""Options that write, trust or reach out: a file that came with data must not set them."""
OF_SOURCES = ("names", "recipe", "expressions")
"""Options that belong to the sources of the project, and do not apply to others."""
LABELS = "Bags, and where the targets are"
"""The panel of options that [labels] holds, of whatever command; and two that `report` lists elsewhere."""
ALSO_LABELS = ("target", "truth")
PATHS = ("boxes", "labels", "bags", "ignore", "truth", "compare", "kaist", "msrs")
"""Options whose values are relative to the project file."""
INSTEAD = (("boxes", "labels"), ("labels", "boxes"))
"""Options that, if they are typed, replace another of the project file."""


def _load(ctx: typer.Context, given: Path | None) -> Path | None:
    """Read the project file, and make what it says the defaults of the command."""
    if given is None or ctx.resilient_parsing:
        return given
    project = read_project(given)
    ctx.meta["bimichi.project"] = project
    ctx.default_map = {**(ctx.default_map or {}), **_defaults(ctx, given, project)}
    return given


ProjectFile = Annotated[
    Path | None,
    typer.Option(
        "--project",
        help="A project file, or a folder with a `bimichi.toml`: its sources, labels and options hold where the "
        "command line gives none. `bimichi init` writes one.",
        metavar="FILE",
        callback=_load,
        is_eager=True,
        show_default=False,
    ),
]


def use_project(given: dict[str, Any], argument: str, needed: bool) -> None:
    """Complete the parameters of a command by its project file: sources, and options that exclude each other."""
    ctx, project = given["ctx"], given["ctx"].meta.get("bimichi.project")
    typed = {name for name in given if str(getattr(ctx.get_parameter_source(name), "name", "")) == "COMMANDLINE"}
    change: dict[str, Any] = {}
    if project is None:
        if needed and not given[argument]:
            raise typer.BadParameter("missing; give them, or a project file with --project", param_hint="'SOURCES'")
        return
    if not given[argument]:
        change[argument] = project.arguments()
    else:
        change |= {name: None for name in OF_SOURCES if name in given and name not in typed}
    for kept, dropped in INSTEAD:
        if kept in typed and dropped in given and dropped not in typed:
            change[dropped] = None
    given.update(change)
    ctx.params.update(change)


def _defaults(ctx: typer.Context, file: Path, project: Project) -> dict[str, Any]:
    """Return the values of the options of this command, by their names."""
    file = file / FILE_NAME if file.is_dir() else file
    own = str(ctx.info_name)
    siblings: Mapping[str, Any] = getattr(getattr(ctx.parent, "command", None), "commands", {})
    listed = {name: getattr(one, "params", []) for name, one in {own: ctx.command, **siblings}.items()}
    commands = {name: some for name, some in listed.items() if any(option.name == "project" for option in some)}
    labels = _labels(commands)
    known = _known(commands, labels)
    for key in project.labels:
        if key not in labels:
            raise unknown_key(file, key, labels, "labels")
    for title, options in project.commands.items():
        if title not in known:
            raise unknown_key(file, title, ["sources", "expressions", "labels", *known], "")
        for key in options:
            if key in ONLY_TYPED:
                raise InvalidInputError(f"{file} sets {key} in [{title}], which only the command line may; remove it.")
            if key not in known[title]:
                raise unknown_key(file, key, known[title], title)
    parameters = {parameter.name for parameter in ctx.command.params}
    values = {key: value for key, value in project.labels.items() if key in parameters}
    values |= project.commands.get(own, {})
    found = {key: _located(key, value, project) for key, value in values.items()}
    for key, texts in (("names", project.names()), ("recipe", project.recipes())):
        if texts is not None and key in parameters:
            found[key] = ",".join(texts)
    if project.expressions and "expressions" in parameters:  # other commands have them from the model
        found["expressions"] = list(project.expressions)
    return found


def _labels(commands: Mapping[str, list[Any]]) -> list[str]:
    every = [parameter for some in commands.values() for parameter in some]
    panel = [str(one.name) for one in every if getattr(one, "rich_help_panel", None) == LABELS]
    return list(dict.fromkeys([*panel, *ALSO_LABELS]))


def _known(commands: Mapping[str, list[Any]], labels: Sequence[str]) -> dict[str, list[str]]:
    """Return the options that the table of each command may set."""
    hidden = {*ONLY_TYPED, *labels, *OF_SOURCES, "json", "quiet"}
    return {
        name: [str(one.name) for one in some if one.param_type_name == "option" and one.name not in hidden]
        for name, some in commands.items()
    }


def _located(key: str, value: Any, project: Project) -> Any:
    """Make paths relative to where the program runs."""
    if key not in PATHS:
        return value
    if isinstance(value, list):
        return [_located(key, part, project) for part in value]
    if not isinstance(value, str):
        raise InvalidInputError(f"{key} in the project file must be a path, got {value!r}.")
    return project.located(value)
