"""`bimichi init`: write a project file by looking at a folder."""

from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape

from bimichi.cli.console import Output
from bimichi.cli.options import flag
from bimichi.errors import BimichiError
from bimichi.io.project import FILE_NAME, write_project
from bimichi.sources.bands import first_few

NEXT = "Paths are relative to this file. Check it, then look at the data: bimichi check --project {file}"


def init(
    *,
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", show_default=False, help="A folder with images.")],
    force: Annotated[bool, flag("--force", "Replace a project file that exists.")] = False,
    say: Output,
) -> None:
    """Write a project file, `bimichi.toml`, for the images and labels in a folder, by looking at them.

    Finds folders of equally named images, images whose names end in their source (`7_ir.png`, `7_vi.png`), single
    files, masks, and annotation files. Other commands then take `--project FOLDER`:

    ```
    bimichi init streets
    bimichi check --project streets
    bimichi train --project streets -o model.json
    ```
    """
    from bimichi.io.project import discover

    file = folder / FILE_NAME
    if (file.exists() or file.is_symlink()) and not force:
        raise BimichiError(f"{file} exists already; it is kept. Pass --force to replace it.", code="project-exists")
    seen = discover(folder)
    if seen.project is None:
        held = f"It holds {first_few(seen.unknown)}." if seen.unknown else "It is empty; name the folder of the images."
        raise BimichiError(
            f"Found no images of sources in {folder}. {held} Nothing was written.", code="images-missing"
        )
    write_project(file, seen.project, [NEXT.format(file=file), *seen.hints])
    lines = [*(f"Found {line}." for line in seen.found), *seen.hints]
    if seen.unknown:
        lines.append(f"Not recognised, and left out: {first_few(seen.unknown)}.")
    lines.append(f"Wrote {file}. Next: bimichi check --project {file}")
    data = {"project": file, "found": seen.found, "hints": seen.hints, "unknown": seen.unknown}
    say.result(data, escape("\n".join(lines)))
