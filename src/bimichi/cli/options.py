"""Options that commands share, alone or in groups."""

import inspect
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_args

import typer

from bimichi.decision import check_widths
from bimichi.errors import InvalidInputError, with_code
from bimichi.io.annotations import ANNOTATION_FORMATS
from bimichi.io.dataset import MAX_SOURCES, SceneCollection
from bimichi.io.project import FILE_NAME, TOP_KEYS, Arguments, Project, read_project, unknown_key
from bimichi.sources.expressions import parse_expression
from bimichi.sources.recipes import RECIPES, load_recipe, split_names

ONLY_TYPED = ("output", "project", "trust_recipes", "driver", "force", "help")
"""Options that write, trust or reach out: a file that came with data must not set them."""
OF_SOURCES = ("names", "recipe", "expressions")
"""Options that belong to the sources of the project, and do not apply to others."""
LABELS = "Bags, and where the targets are"
"""The panel of options that [labels] holds, of whatever command; and two that `report` lists elsewhere."""
ALSO_LABELS = ("target", "truth")
PATHS = ("boxes", "labels", "bags", "ignore", "truth", "compare", "kaist", "msrs")
"""Options whose values are relative to the project file."""
SUPERPIXELS = 300
"""About how many bags a scene has by default."""
INSTEAD = (("boxes", "labels"), ("labels", "boxes"))
"""Options that, if they are typed, replace another of the project file."""


def _load(ctx: typer.Context, file: Path | None) -> Path | None:
    """Read the project file, and make what it says the defaults of the command."""
    if file is None or ctx.resilient_parsing:
        return file
    project = read_project(file)
    ctx.meta["bimichi.project"] = project
    ctx.default_map = {**(ctx.default_map or {}), **_defaults(ctx, file, project)}
    return file


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


def use_project(parameters: dict[str, Any], argument: str, needed: bool) -> None:
    """Complete the parameters of a command by its project file: sources, and options that exclude each other."""
    ctx, project = parameters["ctx"], parameters["ctx"].meta.get("bimichi.project")
    typed = {name for name in parameters if str(getattr(ctx.get_parameter_source(name), "name", "")) == "COMMANDLINE"}
    change: dict[str, Any] = {}
    if project is None:
        if needed and not parameters[argument]:
            raise typer.BadParameter("missing; give them, or a project file with --project", param_hint="'SOURCES'")
        return
    if not parameters[argument]:
        change[argument] = project.arguments()
    else:
        change |= {name: None for name in OF_SOURCES if name in parameters and name not in typed}
    for kept, dropped in INSTEAD:
        if kept in typed and dropped in parameters and dropped not in typed:
            change[dropped] = None
    parameters.update(change)
    ctx.params.update(change)


def _defaults(ctx: typer.Context, file: Path, project: Project) -> dict[str, Any]:
    """Return the values of the options of this command, by their names."""
    file = file / FILE_NAME if file.is_dir() else file
    own = str(ctx.info_name)
    siblings: Mapping[str, Any] = getattr(getattr(ctx.parent, "command", None), "commands", {})
    listed = {name: getattr(command, "params", []) for name, command in {own: ctx.command, **siblings}.items()}
    commands = {name: some for name, some in listed.items() if any(option.name == "project" for option in some)}
    labels = _labels(commands)
    allowed = _known(commands, labels)
    for key in project.labels:
        if key not in labels:
            raise unknown_key(file, key, labels, "labels")
    for title, options in project.commands.items():
        if title not in allowed:
            raise unknown_key(file, title, [*TOP_KEYS, *allowed], "")
        for key in options:
            if key in ONLY_TYPED:
                raise InvalidInputError(
                    f"{file} sets {key} in [{title}], which only the command line may; remove it.",
                    code="project-option",
                )
            if key not in allowed[title]:
                raise unknown_key(file, key, allowed[title], title)
    parameters = {parameter.name for parameter in ctx.command.params}
    values = {key: value for key, value in project.labels.items() if key in parameters}
    values |= project.commands.get(own, {})
    defaults = {key: _located(key, value, project) for key, value in values.items()}
    for key, texts in (("names", project.names()), ("recipe", project.recipes())):
        if texts is not None and key in parameters:
            defaults[key] = ",".join(texts)
    if project.expressions and "expressions" in parameters:  # other commands have them from the model
        defaults["expressions"] = list(project.expressions)
    if project.align and "align" in parameters:
        defaults["align"] = True
    return defaults


def _labels(commands: Mapping[str, list[Any]]) -> list[str]:
    every = [parameter for some in commands.values() for parameter in some]
    panel = [str(option.name) for option in every if getattr(option, "rich_help_panel", None) == LABELS]
    return list(dict.fromkeys([*panel, *ALSO_LABELS]))


def _known(commands: Mapping[str, list[Any]], labels: Sequence[str]) -> dict[str, list[str]]:
    """Return the options that the table of each command may set."""
    hidden = {*ONLY_TYPED, *labels, *OF_SOURCES, "json", "quiet"}
    return {
        name: [str(option.name) for option in some if option.param_type_name == "option" and option.name not in hidden]
        for name, some in commands.items()
    }


def _located(key: str, value: Any, project: Project) -> Any:
    """Make paths relative to where the program runs."""
    if key not in PATHS:
        return value
    if isinstance(value, list):
        return [_located(key, part, project) for part in value]
    if not isinstance(value, str):
        raise InvalidInputError(
            f"{key} in the project file must be a path, got {value!r}.", code="project-path", value=value
        )
    return project.located(value)


if TYPE_CHECKING:
    from bimichi.scenes.labels import Labelling


def value(text: str, metavar: str | None = None, **more: Any) -> Any:
    """Return an option that takes a value."""
    return typer.Option(help=text, metavar=metavar, **more)


def flag(name: str, text: str, **more: Any) -> Any:
    """Return an option that is given or not."""
    return typer.Option(name, help=text, **more)


def _label(text: str, metavar: str, **limits: Any) -> Any:
    return value(text, metavar, rich_help_panel=LABELS, **limits)


def output_option(text: str, **options: Any) -> Any:
    """Return the option --output, -o."""
    return typer.Option("--output", "-o", help=text, show_default=False, **options)


def listed(text: str | None) -> list[str] | None:
    """Split text at commas."""
    return None if text is None else [part.strip() for part in text.split(",")]


def open_sources(
    sources: Sequence[str],
    names: str | None,
    align: bool,
    driver: str | None,
    limit: int = MAX_SOURCES,
    expressions: Sequence[str] | None = None,
) -> SceneCollection:
    """Open the scenes of the arguments SOURCES, by the options of the same names."""
    computed = [parse_expression(text) for text in expressions or ()]
    options: dict[str, Any] = {"align": align, "drivers": listed(driver) or (), "computed": computed}
    arguments = sources if isinstance(sources, Arguments) else Arguments(sources)
    return arguments.open(listed(names), limit=limit, **options)


def checked(parse: Callable[[str], object]) -> Callable[[str | None], str | None]:
    """Return the callback of an option whose text `parse` must take."""

    def check(text: str | None) -> str | None:
        if text is not None:
            parse(text)
        return text

    return check


def load_recipes(names: Iterable[str] | None) -> None:
    """Import the functions that recipes name by import path, also from the working directory."""
    paths = [name for name in names or () if ":" in name]
    folder = str(Path.cwd())
    if paths and folder not in sys.path:
        sys.path.append(folder)
    for name in names or ():
        try:
            load_recipe(name)
        except InvalidInputError as error:
            raise typer.BadParameter(with_code(error)) from error


Sources = Annotated[
    list[str],
    typer.Argument(
        metavar="SOURCES",
        show_default=False,
        help="One argument per source: an image file; or, for many scenes, a folder or a quoted pattern, whose files "
        "are paired by name. Files may have several bands; 's2.tif[B3,B8]' chooses some, by description or number.",
    ),
]
Model = Annotated[Path, typer.Argument(metavar="MODEL", show_default=False, help="A model from `bimichi train`.")]
Names = Annotated[str | None, value("Names of the sources, in the order given, separated by commas.", "A,B,C")]
Align = Annotated[
    bool,
    flag(
        "--align",
        "Resample sources on other grids to that of the first; images that are not georeferenced are taken to "
        "show the same area.",
    ),
]
Driver = Annotated[
    str | None,
    value(
        "GDAL drivers, separated by commas, for sources of formats other than PNG, JPEG, TIFF, NumPy, Zarr, "
        "NetCDF, DICOM and NIfTI.",
        "NAME",
    ),
]


def widths_of(text: str | None) -> tuple[float, float] | None:
    """Return the widths of a Gaussian, across and down, from text such as 2 or 2,4."""
    if text is None:
        return None
    try:
        widths = [float(part) for part in text.split(",")]
        return check_widths(widths * 2 if len(widths) == 1 else widths)
    except ValueError:  # of which InvalidInputError is a kind
        raise typer.BadParameter(
            f"{text!r} must be a width in pixels such as 2, or two, across and down: 2,4"
        ) from None


Smooth = Annotated[
    str | None,
    value(
        "Smooth fused maps by a Gaussian of this width in pixels; or of two, across and down.",
        "SIGMA[,SIGMA]",
        callback=checked(widths_of),
    ),
]
MinSize = Annotated[int | None, value("The least number of connected pixels that is a target.", "N", min=1)]
TrustRecipes = Annotated[
    bool, flag("--trust-recipes", "Import the Python functions that the model names as recipes, if any.")
]
Folder = Annotated[Path, typer.Option("--output", "-o", help="Folder for all results.")]
Seed = Annotated[int, value("Seed of all random numbers.", "N", min=0)]
Jobs = Annotated[int | None, value("Number of threads; all cores by default.", "N", min=1)]


@dataclass(frozen=True)
class SourceOptions:
    """How images become sources."""

    names: Names = None
    recipe: Annotated[
        str | None,
        value(
            f"How an image becomes a source in [-1, 1], one for all or one each: {', '.join(RECIPES.names())}; several "
            "in a row as in 'edge_strength|rarity'; or a Python function as in my.module:function. By default "
            "to_bipolar for integers, over the range of their type, and as_is for floats.",
            "A,B,C",
            callback=checked(lambda text: load_recipes(split_names(text))),
        ),
    ] = None
    align: Align = False
    driver: Driver = None
    expressions: Annotated[
        list[str] | None,
        typer.Option(
            "--expression",
            help="A source computed from bands, such as 'ndwi: (B3 - B8) / (B3 + B8)'; once for each source. The model "
            "keeps them.",
            metavar="NAME: FORMULA",
        ),
    ] = None

    def open(self, sources: Sequence[str], limit: int = MAX_SOURCES) -> SceneCollection:
        """Open the scenes of these arguments."""
        return open_sources(sources, self.names, self.align, self.driver, limit, self.expressions)

    @property
    def recipes(self) -> list[str] | None:
        """The recipes, one for all sources or one each."""
        return None if self.recipe is None else split_names(self.recipe)


@dataclass(frozen=True)
class LabelOptions:
    """How bags are made, and where the targets are."""

    boxes: Annotated[
        Path | None,
        _label(f"Boxes or outlines of targets: a file or a folder, {', '.join(ANNOTATION_FORMATS.names())}.", "FILE"),
    ] = None
    labels: Annotated[
        str | None,
        _label(
            "Instead of boxes: a mask of targets, above 0, or another annotation file; a folder or a quoted "
            "pattern for many scenes.",
            "FILE",
        ),
    ] = None
    bags: Annotated[
        str | None,
        _label(
            "superpixels, by default; boxes: the core of each box is a positive bag, pixels outside are negative, the "
            "rest is left out; or an image that numbers the bag of each pixel (./boxes if it has such a name).",
            "superpixels|boxes|IMAGE",
        ),
    ] = None
    superpixels: Annotated[int, _label("About how many bags per scene.", "N", min=1)] = SUPERPIXELS
    min_overlap: Annotated[
        float,
        _label("The least share of a positive bag that is target; 0: one pixel is enough.", "SHARE", min=0.0, max=1.0),
    ] = 0.0
    ignore: Annotated[
        str | None, _label("Mask, above 0 where targets are unknown: such bags, unless positive, are left out.", "MASK")
    ] = None
    target: Annotated[
        str | None, _label("Count only this class as target: a value of the mask, or a label of boxes.", "VALUE")
    ] = None

    point_radius: Annotated[
        float, _label("Radius of targets that are points without one, in pixels; 0: one pixel.", "PIXELS", min=0.0)
    ] = 0.0
    count_ignored: Annotated[
        bool,
        flag(
            "--count-ignored",
            "Count objects that a file marks to be ignored (crowds, difficult ones) as any other.",
            rich_help_panel=LABELS,
        ),
    ] = False

    negative: Annotated[
        str | None,
        _label("Label of objects that are not targets, even inside of others; with --bags boxes.", "LABEL"),
    ] = None
    rest: Annotated[
        Literal["negative", "unknown"],
        _label("What pixels outside all objects are; with --bags boxes.", "negative|unknown"),
    ] = "negative"
    core: Annotated[
        str | None,
        _label("With --bags boxes, the share of a box that shows its target, across and down.", "SHARE,SHARE"),
    ] = None
    labelled_only: Annotated[
        bool,
        flag(
            "--labelled-only",
            "Leave out scenes that the annotations do not name, instead of taking them to have no targets.",
            rich_help_panel=LABELS,
        ),
    ] = False

    def labelling(self) -> "Labelling":
        """Return them as the library takes them."""
        from bimichi.scenes.labels import CORE, Labelling

        values = vars(self) | {"core": CORE if self.core is None else _shares(self.core)}
        if (self.boxes is None) == (self.labels is None):
            raise typer.BadParameter("give exactly one of them", param_hint="'--boxes' / '--labels'")
        return Labelling(**values)


def _shares(text: str) -> tuple[float, float]:

    from bimichi.scenes.labels import check_core

    try:
        return check_core([float(part) for part in text.split(",")])
    except ValueError:  # of which InvalidInputError is a kind
        raise typer.BadParameter(
            f"{text!r} must be two shares in (0, 1], such as 0.6,0.9", param_hint="'--core'"
        ) from None


def expand_groups(command: Callable[..., None]) -> Callable[..., None]:
    """Return a command with each parameter that is a group of options, a dataclass, replaced by the options in it.

    typer reads the options of a command from its signature; groups let commands share them without repeating them. A
    command that takes SOURCES also gets the option --project, which may give them instead.
    """
    parameters: list[inspect.Parameter] = []
    groups: dict[str, Any] = {}
    group: Any
    for parameter in inspect.signature(command, eval_str=True).parameters.values():
        if is_dataclass(parameter.annotation):
            group = groups[parameter.name] = parameter.annotation
            parameters += inspect.signature(group, eval_str=True).parameters.values()
        else:
            parameters.append(parameter)
    taken = None
    for k, parameter in enumerate(parameters):
        if any(getattr(option, "metavar", "") == "SOURCES" for option in get_args(parameter.annotation)[1:]):
            taken = k
    argument, needed = "", False
    if taken is not None:
        argument, needed = parameters[taken].name, parameters[taken].default is inspect.Parameter.empty
        parameters[taken] = parameters[taken].replace(default=None)
        project = inspect.Parameter("project", inspect.Parameter.KEYWORD_ONLY, default=None, annotation=ProjectFile)
        parameters.append(project)

    @wraps(command)
    def expanded(**values: Any) -> None:
        if argument:
            use_project(values, argument, needed)
            del values["project"]
        objects = {
            name: group(**{field.name: values.pop(field.name) for field in fields(group)})
            for name, group in groups.items()
        }
        command(**values, **objects)

    keywords = [parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY) for parameter in parameters]
    expanded.__signature__ = inspect.Signature(keywords)  # type: ignore[attr-defined]  # which typer reads
    return expanded
