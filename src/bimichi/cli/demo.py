"""`bimichi demo`: a demonstration that takes less than a minute."""

from pathlib import Path

import typer
from rich.markup import escape

from bimichi.cli.console import Output, rich_table
from bimichi.cli.options import Folder, Jobs, Seed
from bimichi.cli.outputs import Run, output_folder

SIZE = (240, 320)  # a quarter of the pixels of a camera, so that methods take seconds

NEXT = """What to try next:
  bimichi studio {images}
                                             draw boxes on that street in the browser, and watch the map learn
  bimichi reproduce pedestrian --street      such a street at full size, with all methods
  bimichi reproduce flood                    floods from radar and optical images; or lesions, from MR images
  bimichi train --help                       learn from your own images and boxes
  bimichi study --street --train 4 --test 2 -o output/study
                                             learn from some scenes, score on others"""


def demo(
    ctx: typer.Context, *, output: Folder = Path("output/demo"), seed: Seed = 0, jobs: Jobs = None, say: Output
) -> None:
    """Show what bimichi does: the letters of the paper, and people on a drawn street at night.

    Takes less than a minute and needs no data. The two slowest methods are left out.

    ```
    bimichi demo
    bimichi demo -o pictures
    ```
    """
    from bimichi.datasets import street
    from bimichi.datasets.folders import write_folder
    from bimichi.experiments import SLOW, run_pedestrian, run_um

    folder = output_folder(output)
    with Run("demo", ctx.params, seed=seed) as run:
        say.note("1/2 UM: a letter that all sensors miss, found as the other pole")
        with run.timed("UM"):
            letters = run_um(random_state=seed, n_jobs=jobs)
            written = letters.write(output_folder(folder / "um"))
        say.note("2/2 A street at night: people, lamps, warm windows")
        with run.timed("street"):
            people = run_pedestrian(street(*SIZE, random_state=seed), None, seed, jobs, say.verbose, SLOW)
            written += people.write(output_folder(folder / "street"))
            images = output_folder(folder / "images")
            written += write_folder(images, "street", [seed], SIZE)
        run.write(folder / "run.json", written)
    results = [path for path in written if path.suffix in (".png", ".html") and images not in path.parents]
    pictures = [f"  {escape(str(path))}" for path in results]
    data = {"um": letters.to_dict(), "street": people.to_dict(), "files": written}
    say.result(
        data,
        rich_table(letters.table()),
        *map(escape, letters.proofs()),
        rich_table(people.table()),
        "Pictures and reports:",
        *pictures,
        escape(NEXT.format(images=images)),
    )
