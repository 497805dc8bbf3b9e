"""Use the bare package, without any extra: learn, fuse, explain, save, load, report."""

import tempfile
from pathlib import Path

import numpy as np

import bimichi
from bimichi import BiMIChI, FusionRule
from bimichi.explain import summary

rng = np.random.default_rng(0)
bags = np.repeat(np.arange(60), 50)
y = (bags % 3 == 0).astype(int)
X = np.clip(rng.normal(-0.3, 0.3, (3000, 3)), -1, 1)
X[(y == 1) & (rng.random(3000) < 0.2)] = [0.8, 0.6, 0.7]
model = BiMIChI(random_state=0).fit(X, y, bags=bags)
image = rng.uniform(-1, 1, (40, 50, 3))
with tempfile.TemporaryDirectory() as name:
    model.save(Path(name) / "model.json")
    rule = FusionRule.load(Path(name) / "model.json")
    assert np.array_equal(rule.fuse(image), model.fuse(image))
    model.report(Path(name) / "report.html", image)
    assert "bimichi report" in (Path(name) / "report.html").read_text(encoding="utf-8")
assert summary(model, image).sentences
assert model.solution_.status == "converged"
assert "site-packages" in bimichi.__file__, bimichi.__file__
try:
    summary(model, image).to_frame()
except ImportError as error:
    if "pip install 'bimichi[frame]'" not in str(error):
        raise
else:
    raise SystemExit("pandas is here: this is no bare environment")
