"""Learn to fuse from labelled bags: three noisy sources, bags of pixels, a label per bag. Prints what was learned."""

import numpy as np

from bimichi import BiMIChI

rng = np.random.default_rng(0)
bags = np.repeat(np.arange(60), 50)  # 60 bags of 50 pixels
y = (bags % 3 == 0).astype(int)  # a third of them hold a target somewhere
X = rng.normal([-0.5, 0.4, 0.0], 0.2, (len(bags), 3))  # thermal, brightness, texture
targets = (y == 1) & (rng.random(len(bags)) < 0.2)
X[targets] = rng.normal([0.7, -0.6, 0.0], 0.2, (int(targets.sum()), 3))  # warm and dark
X = np.clip(X, -1, 1)

model = BiMIChI(polarity="learn", source_names=["thermal", "bright", "texture"], random_state=0)
model.fit(X, y, bags=bags)
fused = model.fuse(X)

print(model.to_markdown())
print(f"\nJ = {model.objective_value_:.3f} ({model.solution_.status})")
print(f"fused, on the average: {fused[targets].mean():.2f} on targets, {fused[~targets].mean():.2f} elsewhere")
