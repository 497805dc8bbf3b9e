"""Damages files, for tests of readers: bytes, values inside JSON, members inside ZIP archives."""

import io
import json
import random
import zipfile
from collections import Counter
from copy import deepcopy

from hypothesis import HealthCheck, given, settings, strategies as st

from bimichi import ModelFileError

__all__ = ["check_mutated", "mutate", "mutate_content"]

NONSENSE = [
    *(None, True, False, -1, 0, 3, 10**400, -(10**400), 2**63, 1e308, -1e308, 5e-324, 0.5, "", "x", "\0", "\x1b[2J"),
    *("\udcff", "9" * 5000, [], {}, [[]], [None], {"": {}}, [1e308] * 9, [-1] * 27, ["a", "a"], "../../x", "nan"),
]


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


def mutate_content(content, rng):
    """Damage a file by what it is: values of JSON, members of an archive, or else, and sometimes anyway, its bytes."""
    if rng.random() < 0.5:
        if content[:1] in (b"{", b"["):
            return _mutate_json(content, rng)
        if content[:2] == b"PK":
            return _mutate_archive(content, rng)
    return mutate(content, rng)


def _mutate_json(content, rng):
    document = json.loads(content)
    for _ in range(rng.randint(1, 3)):
        places = list(_places(document))
        if not places:
            break
        holder, key = rng.choice(places)
        kind = rng.randrange(4)
        if kind == 0:
            del holder[key]
        elif kind == 1 and isinstance(holder, dict):
            holder[rng.choice(["checkpoint", "x" * 50, key + "_", "\x1b"])] = holder[key]
        else:
            holder[key] = deepcopy(rng.choice(NONSENSE))  # which the next round may damage
    return json.dumps(document).encode()


def _places(value):
    """Yield every list or object in a document, with every place in it."""
    if isinstance(value, dict | list):
        for key in value if isinstance(value, dict) else range(len(value)):
            yield value, key
            yield from _places(value[key])


def _mutate_archive(content, rng):
    """Damage one member; its checksum is right, so that readers see the damage."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        members = {member.filename: (archive.read(member), member.compress_type) for member in archive.infolist()}
    name = rng.choice(list(members))
    damaged = mutate_content(members[name][0], rng) if rng.random() < 0.8 else members[rng.choice(list(members))][0]
    members[name] = damaged, members[name][1]
    if rng.random() < 0.1:
        del members[rng.choice(list(members))]
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        for member, (data, kind) in members.items():
            archive.writestr(zipfile.ZipInfo(member), data, kind)
    return made.getvalue()


def check_mutated(load, path, original, n):
    """Check that n damaged versions of a measure's file give a valid measure or our error, and mostly the error."""
    outcomes = Counter()

    @settings(max_examples=n, suppress_health_check=list(HealthCheck))
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
