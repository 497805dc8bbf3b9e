"""Damages the bytes of a file, for tests of readers."""

import random
from collections import Counter

from hypothesis import HealthCheck, given, settings, strategies as st

from bimichi import ModelFileError

__all__ = ["check_mutated", "mutate"]


def mutate(content, rng):
    """Flip, cut, repeat, swap or overwrite some of the bytes."""
    data = bytearray(content)
    for _ in range(rng.randint(1, 6)):
        at = rng.randrange(len(data) or 1)
        kind = rng.randrange(6)
        if kind == 0 and data:
            data[at % len(data)] ^= 1 << rng.randrange(8)
        elif kind == 1:
            del data[at : at + rng.choice([1, 2, 50, 10**6])]
        elif kind == 2:
            data[at:at] = data[at : at + rng.randrange(40)]
        elif kind == 3:
            data[at : at + 1] = rng.choice([b"\0", b"\xff", b"-", b"9" * 30, b"e9", b"NaN", b"null", b'"', b"[{", b"]"])
        elif kind == 4:
            data[at:at] = rng.randbytes(rng.randrange(8))
        else:
            other = rng.randrange(len(data) or 1)
            data[at : at + 8], data[other : other + 8] = data[other : other + 8], data[at : at + 8]
    return bytes(data)


def check_mutated(load, path, original, n):
    """Check that n damaged versions of a measure's file give a valid measure or our error, and mostly the error."""
    outcomes = Counter()

    @settings(max_examples=n, deadline=None, database=None, derandomize=True, suppress_health_check=list(HealthCheck))
    @given(st.integers(0, 2**64 - 1))
    def load_mutated(seed):
        path.write_bytes(mutate(original, random.Random(seed)))
        try:
            assert load(path).is_monotone(1e-9)
            outcomes["loaded"] += 1
        except ModelFileError:
            outcomes["refused"] += 1

    load_mutated()
    assert outcomes.total() >= 2 * n / 3
    assert outcomes["refused"] > outcomes.total() / 2
