import contextlib
import shutil
from pathlib import Path

import pytest
from program import BOX, PAPER, images, make_scenes, run, target_mask

from bimichi.io import write_image


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    make_scenes()
    return tmp_path


@pytest.fixture(scope="module")
def trained_once(tmp_path_factory):
    with contextlib.chdir(tmp_path_factory.mktemp("trained")):
        make_scenes()
        run("train", *PAPER, "thermal.png", "grey.png", "--boxes", "boxes.csv", "--superpixels", 40, "-o", "model.json")
        return Path.cwd()


@pytest.fixture
def trained(here, trained_once):
    for name in ("model.json", "model.json.run.json"):
        shutil.copy(trained_once / name, name)
    return here


@pytest.fixture
def many(here):
    """Three scenes, one folder per source, and once more in one folder; boxes in two of them."""
    for k in range(3):
        for name, image in images(k).items():
            for path in (f"{name}s/s{k}.png", f"flat/s{k}_{name}.png"):
                Path(path).parent.mkdir(exist_ok=True)
                write_image(path, image)
        Path("masks").mkdir(exist_ok=True)
        write_image(f"masks/s{k}.png", target_mask())
    rows = [f"{name},{','.join(map(str, BOX))}" for name in ("s0.png", "s2")]
    Path("all.csv").write_text("\n".join(["image,x,y,w,h", *rows]))
    return here
