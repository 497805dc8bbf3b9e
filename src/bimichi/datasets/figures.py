"""What stands in a drawn street: people, parked cars, lamps, cones and trees, as parts of flat figures in metres."""

import numpy as np

from bimichi.datasets.drawing import Colour, Part, box, capsule, ellipse, polygon, ragged

AIR = 10.0  # temperature of the night, in degrees Celsius
BLACK: Colour = (0.02, 0.02, 0.02)
SKIN: Colour = (0.35, 0.22, 0.16)
CLOTHES: list[Colour] = [
    (0.03, 0.03, 0.035),
    (0.04, 0.05, 0.08),
    (0.07, 0.05, 0.04),
    (0.05, 0.06, 0.05),
    (0.09, 0.09, 0.1),
    (0.12, 0.04, 0.04),
    (0.3, 0.29, 0.27),
]


def person(rng: np.random.Generator, height: float) -> list[Part]:
    """Someone seen from the front or from the side: skin at 23 to 33 degrees, clothes at 13 to 24, as they insulate."""
    s = height / 1.75
    sideways = rng.random() < 0.5
    broad = rng.uniform(0.85, 1.1) * (0.7 if sideways else 1.0)
    hip, stride, swing = (0.02, rng.uniform(0.08, 0.28), 0.2) if sideways else (0.08, rng.uniform(0.0, 0.06), 0.04)
    coat, trousers = CLOTHES[rng.integers(len(CLOTHES))], CLOTHES[rng.integers(5)]
    torso, legs = rng.uniform(16, 24), rng.uniform(15, 21)
    hem, waist, chest = rng.uniform(0.62, 0.9) * s, 0.155 * broad, 0.2 * broad
    parts = []
    for side in (-1, 1):
        knee, foot = (side * (hip + 0.5 * stride), 0.48 * s), (side * (hip + stride), 0.07 * s)
        parts += [
            Part(capsule((side * hip, 0.88 * s), knee, 0.085, 0.068), trousers, legs),
            Part(capsule(knee, foot, 0.068, 0.05), trousers, legs - 1),
            Part(ellipse((foot[0] + 0.02, 0.045 * s), (0.085, 0.045)), BLACK, legs - 2),
        ]
    for side in (-1, 1):
        shoulder, elbow = (side * 0.9 * chest, 1.38 * s), (side * (chest + 0.3 * swing), 1.12 * s)
        hand = (side * (0.9 * chest + swing * rng.uniform(0.3, 1.0)), 0.87 * s)
        parts += [
            Part(capsule(shoulder, elbow, 0.065, 0.055), coat, torso - 0.5),
            Part(capsule(elbow, hand, 0.055, 0.042), coat, torso - 1),
            Part(ellipse(hand, (0.04, 0.05)), SKIN, rng.uniform(23, 29)),
        ]
    parts += [
        Part(capsule((-0.6 * chest, 1.38 * s), (0.6 * chest, 1.38 * s), 0.08, 0.08), coat, torso),
        Part(polygon((-waist, hem), (waist, hem), (chest, 1.4 * s), (-chest, 1.4 * s)), coat, torso),
        Part(capsule((0, 1.42 * s), (0, 1.54 * s), 0.06, 0.05), SKIN, 30.0),
        Part(ellipse((0, 1.63 * s), (0.08 * s, 0.115 * s)), SKIN, rng.uniform(29, 33)),
        Part(ellipse((0, 1.7 * s), (0.085 * s, 0.06 * s)), BLACK, rng.uniform(20, 25)),
    ]
    if rng.random() < 0.3:
        at = 0.25 * float(rng.choice([-1, 1]))
        parts.append(Part(box(at - 0.12, 0.52 * s, at + 0.12, 0.82 * s), CLOTHES[rng.integers(len(CLOTHES))], AIR + 1))
    return parts


def car(rng: np.random.Generator, lights: float = 0.0, bonnet: float = 24.0) -> list[Part]:
    """A car seen from its front, `bonnet` degrees warm; `lights` is how bright its headlamps are."""
    paint: Colour = tuple(rng.choice([0.06, 0.25, 0.5]) * rng.uniform(0.8, 1.0, 3))
    glass: Colour = (0.03, 0.035, 0.04)
    beam: Colour = (lights, 0.95 * lights, 0.8 * lights)
    parts = [
        Part(box(-0.8, 0.0, -0.58, 0.4), BLACK, AIR + 3),
        Part(box(0.58, 0.0, 0.8, 0.4), BLACK, AIR + 3),
        Part(polygon((-0.74, 0.85), (0.74, 0.85), (0.56, 1.42), (-0.56, 1.42)), paint, AIR - 1),
        Part(polygon((-0.66, 0.9), (0.66, 0.9), (0.52, 1.36), (-0.52, 1.36)), glass, AIR - 3),
        Part(polygon((-0.86, 0.25), (0.86, 0.25), (0.84, 0.7), (-0.84, 0.7)), paint, AIR + 1),
        Part(polygon((-0.84, 0.68), (0.84, 0.68), (0.7, 0.95), (-0.7, 0.95)), paint, bonnet - 4),
        Part(polygon((-0.55, 0.72), (0.55, 0.72), (0.45, 0.9), (-0.45, 0.9)), paint, bonnet),
        Part(box(-0.42, 0.42, 0.42, 0.62), BLACK, bonnet + 2),
        Part(box(-0.26, 0.3, 0.26, 0.41), (0.6, 0.6, 0.5), AIR),
    ]
    for side in (-1, 1):
        parts.append(Part(ellipse((side * 0.66, 0.6), (0.15, 0.085)), (0.5, 0.5, 0.5), AIR + 2 + 0.3 * lights, beam))
    return parts


def lamp(side: int, light: Colour) -> list[Part]:
    """A street lamp; its head, on an arm towards `side`, shines and is lukewarm."""
    steel: Colour = (0.12, 0.13, 0.12)
    return [
        Part(capsule((0, 0), (0, 5.2), 0.09, 0.06), steel, AIR - 0.5),
        Part(capsule((0, 5.2), (side * 1.0, 5.45), 0.05, 0.05), steel, AIR - 0.5),
        Part(ellipse((side * 1.15, 5.42), (0.32, 0.13)), (0.5, 0.5, 0.5), 22.0, light),
    ]


def cone() -> list[Part]:
    """A traffic cone, bright in colour and cold; its bands send the light of headlamps back."""
    orange, white = (0.85, 0.25, 0.04), (0.9, 0.9, 0.85)
    return [
        Part(box(-0.2, 0.0, 0.2, 0.05), (0.1, 0.1, 0.1), AIR - 1.5),
        Part(polygon((-0.15, 0.05), (0.15, 0.05), (0.03, 0.75), (-0.03, 0.75)), orange, AIR - 2, (0.07, 0.02, 0.003)),
        Part(polygon((-0.11, 0.25), (0.11, 0.25), (0.087, 0.38), (-0.087, 0.38)), white, AIR - 2.5, (0.14, 0.14, 0.12)),
        Part(polygon((-0.072, 0.48), (0.072, 0.48), (0.053, 0.6), (-0.053, 0.6)), white, AIR - 2.5, (0.14, 0.14, 0.12)),
    ]


def tree(rng: np.random.Generator, height: float) -> list[Part]:
    """A trunk under a crown of leaves in three layers; all are close to the air's temperature."""
    top = 0.45 * height
    parts = [
        Part(capsule((0, 0), (0, top), 0.2, 0.12), (0.05, 0.04, 0.03), AIR + 1.5),
        Part(capsule((0, top), (-0.13 * height, 0.62 * height), 0.1, 0.05), (0.05, 0.04, 0.03), AIR + 1),
        Part(capsule((0, top), (0.12 * height, 0.66 * height), 0.1, 0.05), (0.05, 0.04, 0.03), AIR + 1),
    ]
    for shade, heat in ((0.35, 0.8), (0.6, 0.2), (1.0, -0.5)):
        centre = (height * rng.uniform(-0.05, 0.05), height * rng.uniform(0.66, 0.72))
        crown = ellipse(centre, (height * rng.uniform(0.24, 0.36), height * rng.uniform(0.22, 0.3)))
        leaves: Colour = (0.06 * shade, 0.1 * shade, 0.035 * shade)
        parts.append(Part(ragged(crown, 0.11 * height * shade, rng), leaves, AIR + heat))
    return parts
