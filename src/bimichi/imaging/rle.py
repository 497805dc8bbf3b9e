"""Run lengths of masks as annotation tools write them."""

from collections.abc import Iterable

import numpy as np

from bimichi._types import Flags, Ints
from bimichi.errors import InvalidInputError
from bimichi.imaging.shapes import LARGEST_MASK

LONGEST = 13  # characters of one number in compressed run lengths, 5 bits each


def decode_coco(text: str) -> Ints:
    """Return the run lengths in the compressed text of COCO.

    Each number is written in groups of 5 bits, the lowest first, in characters from "0" on; from the fourth on it is
    the difference to the number before the last.
    """
    counts: list[int] = []
    value = shift = 0
    for character in text:
        group = ord(character) - 48
        if not 0 <= group < 64 or shift >= 5 * LONGEST:
            raise InvalidInputError(f"the run lengths of a mask are damaged at {character!r}.")
        value |= (group & 31) << shift
        shift += 5
        if group & 32:
            continue
        if group & 16:
            value -= 1 << shift
        counts.append(value + (counts[-2] if len(counts) > 2 else 0))
        value = shift = 0
    if shift:
        raise InvalidInputError("the run lengths of a mask end within a number.")
    return _counts(counts)


def encode_coco(counts: Iterable[int]) -> str:
    """Return run lengths as the compressed text of COCO; the opposite of `decode_coco`."""
    lengths, characters = [int(count) for count in counts], []
    for k, length in enumerate(lengths):
        value, more = length - (lengths[k - 2] if k > 2 else 0), True
        while more:
            group, value = value & 31, value >> 5
            more = value != (-1 if group & 16 else 0)
            characters.append(chr(48 + group + 32 * more))
    return "".join(characters)


def listed_counts(values: Iterable[float]) -> Ints:
    """Return run lengths given as numbers."""
    given = list(values)
    if any(value != int(value) for value in given):
        raise InvalidInputError("the run lengths of a mask must be whole numbers.")
    return _counts([int(value) for value in given])


def mask_by_rows(counts: Ints, height: int, width: int) -> Flags:
    """Return the mask of run lengths that go row by row, the first of pixels outside."""
    if height < 1 or width < 1 or height * width > LARGEST_MASK or int(counts.sum()) != height * width:
        raise InvalidInputError(
            f"the run lengths of a mask of {width} x {height} pixels sum to {int(counts.sum())}, not to their product."
        )
    return np.repeat(np.arange(len(counts)) % 2 == 1, counts).reshape(height, width)


class _Bits:
    """The bits of a list of bytes, read as numbers, the highest bit first."""

    def __init__(self, content: bytes) -> None:
        self._bits = np.unpackbits(np.frombuffer(content, np.uint8))
        self._at = 0

    def read(self, n: int) -> int:
        bits = self._bits[self._at : self._at + n]
        if len(bits) < n:
            raise InvalidInputError("the run lengths of a brush end too early.")
        self._at += n
        return int.from_bytes(np.packbits(bits).tobytes(), "big") >> (-n % 8)


def decode_brush(values: Iterable[float], height: int, width: int) -> Flags:
    """Return the mask of a brush of Label Studio: the alpha of an RGBA image, in its own run lengths.

    A header gives the number of values, their bits, and the bits of four kinds of lengths. Then follow blocks: a bit
    that says whether one value is repeated, the kind of length, the length less one, and the value or values.
    """
    numbers = [int(value) for value in values]
    if any(not 0 <= value < 256 for value in numbers):
        raise InvalidInputError("the run lengths of a brush must be bytes, from 0 to 255.")
    if height < 1 or width < 1 or height * width > LARGEST_MASK // 4:
        raise InvalidInputError(f"a brush on {width} x {height} pixels cannot be read.")
    bits = _Bits(bytes(numbers))
    total, word = bits.read(32), bits.read(5) + 1
    sizes = [bits.read(4) + 1 for _ in range(4)]
    if total != 4 * height * width:
        raise InvalidInputError(
            f"a brush holds {total} values, but its image of {width} x {height} pixels needs {4 * height * width}."
        )
    found = np.zeros(total, np.bool_)
    at = 0
    while at < total:
        repeated = bits.read(1)
        stop = at + 1 + bits.read(sizes[bits.read(2)])
        if stop > total:
            raise InvalidInputError("the run lengths of a brush exceed its image.")
        if repeated:
            found[at:stop] = bits.read(word) > 0
        else:
            found[at:stop] = [bits.read(word) > 0 for _ in range(stop - at)]
        at = stop
    return np.ascontiguousarray(found.reshape(height, width, 4)[..., 3])


def _counts(values: list[int]) -> Ints:
    if any(not 0 <= value <= LARGEST_MASK for value in values):
        raise InvalidInputError(f"the run lengths of a mask must lie between 0 and {LARGEST_MASK}.")
    return np.array(values, dtype=np.int64)
