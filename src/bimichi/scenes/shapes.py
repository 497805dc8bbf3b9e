"""Places in an image and their pixels: boxes, polygons with holes, discs, masks by run lengths; outlines of regions.

Coordinates are in pixels, x to the right, y down, from the upper left corner of the image: the pixel in row r and
column c is the square from (c, r) to (c + 1, r + 1). It belongs to a shape if its square overlaps it. So a polygon with
the corners of a box covers the same pixels as the box.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bimichi._checks import refuse_masked
from bimichi._extras import import_optional
from bimichi._types import Flags, Floats, Ints
from bimichi.errors import InvalidInputError
from bimichi.sources.bands import check_mask, check_shape

TOUCH = 1e-6  # pixels of overlap that may be due to rounding
Window = tuple[slice, slice]
Mapped = Callable[[Floats], Floats]
"""Maps points of shape (n, 2) to other coordinates."""

LARGEST_MASK = 1 << 28
"""Pixels of the largest mask that an annotation file may hold."""

ARC = np.linspace(0, 2 * np.pi, 72, endpoint=False)
"""Angles at which ellipses become polygons."""

Polygon = list[Floats]
"""The outer ring, then those of holes."""

# Sides of a pixel, clockwise on the screen: top, right, bottom, left. For each, the step (row, column) along it, the
# step out of the pixel over it, and the corner (row, column) where it starts.
ALONG = np.array([(0, 1), (1, 0), (0, -1), (-1, 0)])
OUTWARD = np.array([(-1, 0), (0, 1), (1, 0), (0, -1)])
START = np.array([(0, 0), (0, 1), (1, 1), (1, 0)])


@dataclass(frozen=True, eq=False)
class Polygons:
    """One or several polygons, which may have holes.

    Parameters
    ----------
    parts : tuple of tuple of ndarray of float64, shape (n_corners, 2)
        For each polygon its outer ring and then its holes: corners (x, y) in order; the last is joined to the first.
    is_box : bool, default=False
        Whether it is a box of the image, given by its corners on a map.
    """

    parts: tuple[tuple[Floats, ...], ...]
    is_box: bool = False

    @property
    def box(self) -> Floats:
        """The bounding box (x, y, width, height)."""
        return bounding_box(np.concatenate([part[0] for part in self.parts]))

    def mapped(self, function: Mapped) -> "Polygons":
        """Return it in other coordinates."""
        return Polygons(tuple(tuple(function(ring) for ring in part) for part in self.parts), self.is_box)

    @property
    def upright(self) -> bool:
        """True if it is a box as it stands, with edges along the axes, rounding aside."""
        ring = self.parts[0][0]
        if len(self.parts) > 1 or len(self.parts[0]) > 1 or len(ring) != 4:
            return False
        corners = corners_of(bounding_box(ring))
        return bool((np.abs(ring[:, None] - corners).max(axis=2).min(axis=0) < TOUCH).all())

    def paint(self, mask: Flags) -> None:
        """Mark the pixels that overlap it."""
        for outer, *holes in self.parts:
            window, origin = _window(bounding_box(outer), mask.shape)
            shape = mask[window].shape
            if not all(shape):
                continue
            within, crossed = ring_pixels(outer - origin, shape)
            part = within | crossed
            for hole in holes:
                within, crossed = ring_pixels(hole - origin, shape)
                part &= ~within | crossed
            mask[window] |= part


@dataclass(frozen=True, eq=False)
class Disc:
    """A point and a radius around it, in pixels; a radius of 0 is the pixel that holds the point."""

    x: float
    y: float
    radius: float = 0.0

    @property
    def box(self) -> Floats:
        """The bounding box (x, y, width, height); for a point, that of its pixel."""
        if self.radius == 0:
            return np.array([np.floor(self.x), np.floor(self.y), 1, 1])
        return np.array([self.x - self.radius, self.y - self.radius, 2 * self.radius, 2 * self.radius])

    def mapped(self, function: Mapped) -> "Disc":
        """Return it with its centre in other coordinates; the radius is in pixels in all of them."""
        x, y = function(np.array([[self.x, self.y]]))[0]
        return Disc(float(x), float(y), self.radius)

    def paint(self, mask: Flags) -> None:
        """Mark the pixels that overlap it."""
        window, origin = _window(self.box, mask.shape)
        if self.radius == 0:
            mask[window] = True
            return
        rows, columns = (np.arange(length) for length in mask[window].shape)
        x, y = self.x - origin[0], self.y - origin[1]
        across = np.clip(x, columns, columns + 1) - x  # to the nearest point of each pixel
        down = np.clip(y, rows, rows + 1) - y
        mask[window] |= down[:, None] ** 2 + across**2 < (self.radius - TOUCH) ** 2


@dataclass(frozen=True, eq=False)
class Runs:
    """A mask by run lengths, column by column as in COCO, the first of pixels outside.

    Parameters
    ----------
    counts : ndarray of int64
        Lengths of the runs, which sum to height * width.
    height, width : int
        The size of the mask.
    x, y : int, default=0
        Where its upper left corner is in the image.
    image : (int, int), optional
        Height and width of the image, if the file says so; an image of another size is then an error.
    """

    counts: Ints
    height: int
    width: int
    x: int = 0
    y: int = 0
    image: tuple[int, int] | None = None

    def __post_init__(self) -> None:
        size = self.height * self.width
        if min(self.height, self.width) < 1 or size > LARGEST_MASK:
            raise InvalidInputError(
                f"a mask of {self.width} x {self.height} pixels cannot be read; up to {LARGEST_MASK:,} pixels can.",
                code="mask-large",
            )
        if self.counts.ndim != 1 or (self.counts < 0).any() or int(self.counts.sum()) != size:
            raise InvalidInputError(
                f"the run lengths of a mask of {self.width} x {self.height} pixels must be at least 0 and sum to "
                f"{size}, got a sum of {int(self.counts.sum())}.",
                code="run-lengths",
            )

    @property
    def box(self) -> Floats:
        """The bounding box (x, y, width, height); without area if the mask is empty."""
        ends = np.cumsum(self.counts)
        first, stop = ends[0::2][: len(ends[1::2])], ends[1::2]
        first, stop = first[stop > first], stop[stop > first]
        if not len(first):
            return np.array([self.x, self.y, 0, 0], dtype=np.float64)
        left, right = first[0] // self.height, (stop[-1] - 1) // self.height
        over = first // self.height != (stop - 1) // self.height  # a run over two columns has their ends, too
        top = 0 if over.any() else int((first % self.height).min())
        bottom = self.height - 1 if over.any() else int(((stop - 1) % self.height).max())
        return np.array([self.x + left, self.y + top, right - left + 1, bottom - top + 1], dtype=np.float64)

    def mapped(self, function: Mapped) -> "Runs":
        """Return itself: masks are in pixels already."""
        return self

    def array(self) -> Flags:
        """Return the mask as an array of shape (height, width)."""
        inside = np.arange(len(self.counts)) % 2 == 1
        return np.repeat(inside, self.counts).reshape(self.width, self.height).T

    def paint(self, mask: Flags) -> None:
        """Mark its pixels."""
        if self.image is not None and self.image != mask.shape:
            raise InvalidInputError(
                f"a mask was drawn on an image of {self.image[1]} x {self.image[0]} pixels, but this image has "
                f"{mask.shape[1]} x {mask.shape[0]}. Draw it on this image, or resample one of them.",
                code="mask-size",
            )
        window, origin = _window(np.array([self.x, self.y, self.width, self.height]), mask.shape)
        height, width = mask[window].shape
        top, left = int(origin[1]) - self.y, int(origin[0]) - self.x
        mask[window] |= self.array()[top : top + height, left : left + width]


Shape = Polygons | Disc | Runs


def box_mask(boxes: ArrayLike, shape: tuple[int, int]) -> Flags:
    """Mark the pixels that overlap any of the boxes.

    Parameters
    ----------
    boxes : array-like of shape (n_boxes, 4)
        Boxes (x, y, width, height) in pixels, fractions allowed. Parts outside the image are cut off; a box without
        area, or entirely outside, is an error.
    shape : (int, int)
        Height and width of the image.

    Returns
    -------
    mask : ndarray of bool, shape (height, width)

    Examples
    --------
    >>> box_mask([(1, 0, 1.5, 1)], (2, 4)).astype(int)
    array([[0, 1, 1, 0],
           [0, 0, 0, 0]])
    """
    mask = np.zeros(check_shape(shape), np.bool_)
    array = _numbers(boxes, "boxes")
    if array.size and array.shape[1:] != (4,):
        raise InvalidInputError(
            f"boxes must have shape (n_boxes, 4): x, y, width, height, got {array.shape}.",
            code="boxes-shape",
            argument="boxes",
            value=array.shape,
        )
    for k, box in enumerate(array.reshape(-1, 4)):
        if (box[2:] <= 0).any():
            raise InvalidInputError(
                f"Box {k} {shown_box(box)} has no area; width and height must be above 0.", code="box-size"
            )
        if is_outside(box, mask.shape):
            raise outside_error(f"Box {k} {shown_box(box)}", mask.shape)
        mask[box_pixels(box, mask.shape)] = True
    return mask


def shown_box(box: Iterable[float]) -> str:
    """Write a box (x, y, width, height) for errors."""
    return f"({', '.join(f'{number:g}' for number in box)})"


def is_outside(box: Floats, shape: tuple[int, ...]) -> bool:
    """Return True if a box overlaps no pixel of an image."""
    x, y, w, h = box
    return bool(x > shape[1] - TOUCH or y > shape[0] - TOUCH or x + w < TOUCH or y + h < TOUCH)


def outside_error(what: str, shape: tuple[int, ...]) -> InvalidInputError:
    """Return the error about a box that is outside the image."""
    return InvalidInputError(
        f"{what} lies outside the image of width {shape[1]} and height {shape[0]}. "
        "Boxes are (x, y, width, height) in pixels of this image.",
        code="shape-outside",
    )


def box_pixels(box: Floats, shape: tuple[int, ...]) -> tuple[slice, slice]:
    """Return rows and columns of the pixels that overlap a box, which must overlap the image."""
    return _pixels(box[1], box[3], shape[0]), _pixels(box[0], box[2], shape[1])


def polygon_mask(polygons: Sequence[ArrayLike], shape: tuple[int, int]) -> Flags:
    """Mark the pixels that overlap any of the polygons.

    Parameters
    ----------
    polygons : sequence of array-like of shape (n_corners, 2)
        Corners (x, y) of each polygon, in order; the last is joined to the first. Where a polygon crosses itself, the
        even-odd rule applies. Parts outside the image are cut off; a polygon that overlaps no pixel is an error.
    shape : (int, int)
        Height and width of the image.

    Returns
    -------
    mask : ndarray of bool, shape (height, width)
    """
    height, width = check_shape(shape)
    mask = np.zeros((height, width), np.bool_)
    for k, polygon in enumerate(polygons):
        corners = _numbers(polygon, f"Polygon {k}")
        if corners.ndim != 2 or corners.shape[1] != 2 or len(corners) < 3:
            raise InvalidInputError(
                f"Polygon {k} must have shape (n_corners, 2) with at least 3 corners (x, y), got {corners.shape}.",
                code="polygon-points",
                value=corners.shape,
            )
        within, crossed = ring_pixels(corners, (height, width))
        part = within | crossed
        if not part.any():
            raise InvalidInputError(
                f"Polygon {k} overlaps no pixel of the image of width {width} and height {height}. "
                "Corners are (x, y) in pixels of this image.",
                code="shape-outside",
            )
        mask |= part
    return mask


def ring_pixels(corners: Floats, shape: tuple[int, ...]) -> tuple[Flags, Flags]:
    """Return which pixels have their centre inside a ring of corners (x, y), and which ones an edge crosses.

    Corners that miss a line between pixels by rounding alone are moved onto it. A pixel in neither array is wholly
    outside; one in the first alone is wholly inside.
    """
    height, width = shape[0], shape[1]
    whole = np.round(corners)
    exact = np.where(np.abs(corners - whole) < TOUCH, whole, corners)
    within = import_optional("skimage.draw").polygon2mask((height, width), exact[:, ::-1] - 0.5)
    crossed = np.zeros((height, width), np.bool_)
    crossed[_crossed(exact, (height, width))] = True
    return np.asarray(within), crossed


def boxes_of(mask: ArrayLike) -> Floats:
    """Return the bounding boxes (x, y, width, height) of the 8-connected regions of a mask, shape (n_regions, 4).

    Examples
    --------
    >>> boxes_of(np.array([[1, 0, 0, 0], [0, 1, 0, 1]], dtype=bool))
    array([[0., 0., 2., 2.],
           [3., 1., 1., 1.]])
    """
    from scipy import ndimage  # not at the top: names of the package are known without SciPy

    regions, _ = ndimage.label(check_mask(mask, "mask"), structure=np.ones((3, 3)))
    windows = ndimage.find_objects(regions)
    boxes = [(x.start, y.start, x.stop - x.start, y.stop - y.start) for y, x in windows]
    return np.array(boxes, dtype=np.float64).reshape(-1, 4)


def _pixels(start: float, length: float, extent: int) -> slice:
    """Return the pixels along one axis of the image that overlap [start, start + length]."""
    first = max(0, int(np.floor(start + TOUCH)))
    return slice(first, max(first + 1, int(np.ceil(min(start + length - TOUCH, extent)))))


def _crossed(corners: Floats, shape: tuple[int, int]) -> tuple[Ints, Ints]:
    """Return rows and columns of all pixels whose inside an edge of the polygon crosses."""
    extent, stops, n = np.array(shape[::-1]), np.roll(corners, -1, axis=0), len(corners)
    step = stops - corners
    edges, at = [np.tile(np.arange(n), 2)], [np.repeat([0.0, 1.0], n)]  # each edge: its ends, and where it meets ...
    for axis in range(2):  # ... lines between pixels
        low, high = np.minimum(corners[:, axis], stops[:, axis]), np.maximum(corners[:, axis], stops[:, axis])
        first, last = np.maximum(np.ceil(low), 0), np.minimum(np.floor(high), extent[axis])
        counts = np.where(step[:, axis] == 0, 0, np.maximum(last - first + 1, 0)).astype(np.int64)
        edge = np.repeat(np.arange(n), counts)
        lines = first[edge] + np.arange(len(edge)) - np.repeat(np.cumsum(counts) - counts, counts)
        edges.append(edge)
        at.append(np.clip((lines - corners[edge, axis]) / step[edge, axis], 0, 1))
    owner, cuts = np.concatenate(edges), np.concatenate(at)
    order = np.lexsort((cuts, owner))
    owner, cuts = owner[order], cuts[order]
    between = (owner[1:] == owner[:-1]) & (cuts[1:] > cuts[:-1])
    own, half = owner[1:][between], (cuts[1:] + cuts[:-1])[between] / 2
    middles = corners[own] + step[own] * half[:, None]
    within = (middles != np.floor(middles)) & (middles > 0) & (middles < extent)  # not on a line between two pixels
    columns, rows = np.floor(middles[within.all(axis=1)]).astype(np.int64).T
    return rows, columns


def _numbers(values: ArrayLike, what: str) -> Floats:
    try:
        array = np.asarray(refuse_masked(values, what), dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InvalidInputError(
            f"{what} must be numbers, in rows of equal length: {error}.", code="rows-length", argument=what
        ) from error
    if not np.isfinite(array).all():
        raise InvalidInputError(
            f"{what} must be finite numbers, got NaN or infinity among them.", code="finite", argument=what
        )
    return array


def runs_of(mask: Flags, x: int = 0, y: int = 0, image: tuple[int, int] | None = None) -> Runs:
    """Return a mask by run lengths; `x`, `y` and `image` as in `Runs`."""
    flat = mask.T.ravel()
    changes = np.flatnonzero(flat[1:] != flat[:-1]) + 1
    counts = np.diff(np.concatenate([[0], changes, [flat.size]]))
    start = np.zeros(int(flat[:1].any()), np.int64)
    return Runs(np.concatenate([start, counts]).astype(np.int64), mask.shape[0], mask.shape[1], x, y, image)


def ellipse(x: float, y: float, width: float, height: float) -> Floats:
    """Return the corners of a polygon for the ellipse around (x, y) with these half axes."""
    return np.stack([x + width * np.cos(ARC), y + height * np.sin(ARC)], axis=1)


def corners_of(box: Floats) -> Floats:
    """Return the four corners of a box (x, y, width, height)."""
    x, y, width, height = box
    return np.array([[x, y], [x + width, y], [x + width, y + height], [x, y + height]])


def rotated(points: Floats, degrees: float, centre: tuple[float, float]) -> Floats:
    """Turn points clockwise around a centre, as seen with y down."""
    angle = np.deg2rad(degrees)
    turn = np.array([[np.cos(angle), np.sin(angle)], [-np.sin(angle), np.cos(angle)]])
    return np.asarray((points - centre) @ turn + centre)


def bounding_box(points: Floats) -> Floats:
    """Return the box (x, y, width, height) around points."""
    low = points.min(axis=0)
    return np.concatenate([low, points.max(axis=0) - low])


def outline(region: Flags, x: int = 0, y: int = 0) -> list[Polygon]:
    """Return the polygons of a region, one for each of its 4-connected parts.

    Corners are (x, y) in pixels. The rings of a polygon are closed (the last corner is the first); the outer one runs
    counterclockwise where y points up, as GeoJSON asks (RFC 7946), and holes run the other way round.

    Parameters
    ----------
    region : ndarray of bool, shape (height, width)
        Which pixels belong to it.
    x, y : int
        The position of its upper left corner in the image.
    """
    from scipy import ndimage  # not at the top: names of the package are known without SciPy

    parts, n = ndimage.label(region)
    loops = outlines(parts, diagonal=True)
    polygons = []
    for k in range(1, n + 1):
        rings = [np.concatenate([loop, loop[:1]])[::-1] + np.array([x, y], np.float64) for loop in loops[k]]
        polygons.append(sorted(rings, key=lambda ring: ring[:, 0].min()))  # the outer one reaches furthest
    return polygons


def outlines(segments: NDArray[np.integer], diagonal: bool = False) -> dict[int, list[Ints]]:
    """Trace every segment: closed polygons as corners (column, row), without steps along straight lines.

    A pixel reaches from its own number to the next. Parts of a segment (neighbours by a side) are traced clockwise on
    the screen, holes counter-clockwise. Where two pixels meet at a corner alone, a polygon keeps to the one that it
    came along or, with `diagonal`, goes on to the other, so that what they enclose is a hole. O(height * width), then
    O(number of sides that separate segments).
    """
    ranks = np.unique(segments, return_inverse=True)[1].reshape(segments.shape)  # from 0, so that -1 means outside
    padded = np.pad(ranks, 1, constant_values=-1)
    inside = padded[1:-1, 1:-1]
    height, width = inside.shape
    differs = [inside != padded[1 + r : 1 + r + height, 1 + c : 1 + c + width] for r, c in OUTWARD]
    side, row, column = np.nonzero(np.stack(differs))
    row, column = row + 1, column + 1
    following = _following(padded, side, row, column, diagonal)
    corner = np.stack([column + START[side, 1], row + START[side, 0]], axis=1) - 1
    loops: dict[int, list[Ints]] = {}
    turns = side[following] != side
    left = np.ones(len(side), dtype=bool)
    steps, turning = following.tolist(), turns.tolist()
    for first in range(len(side)):
        if not left[first]:
            continue
        loop, edge = [], first
        while left[edge]:
            left[edge] = False
            if turning[edge]:
                loop.append(steps[edge])
            edge = steps[edge]
        owner = int(segments[row[first] - 1, column[first] - 1])
        loops.setdefault(owner, []).append(corner[loop])
    return loops


def _following(padded: Ints, side: Ints, row: Ints, column: Ints, diagonal: bool) -> Ints:
    """Index of the side that continues each side, clockwise, keeping to the same segment."""
    own = padded[row, column]
    ahead_row, ahead_column = row + ALONG[side, 0], column + ALONG[side, 1]
    ahead = padded[ahead_row, ahead_column] == own
    beyond_row, beyond_column = ahead_row + OUTWARD[side, 0], ahead_column + OUTWARD[side, 1]
    beyond = (ahead | diagonal) & (padded[beyond_row, beyond_column] == own)
    # Turn right around the own pixel; or go straight along the pixel ahead; or turn left along the one beyond.
    next_side = np.where(beyond, side - 1, np.where(ahead, side, side + 1)) % 4
    next_row = np.where(beyond, beyond_row, np.where(ahead, ahead_row, row))
    next_column = np.where(beyond, beyond_column, np.where(ahead, ahead_column, column))
    ranks = np.ravel_multi_index((side, row, column), (4, *padded.shape))  # sorted, as np.nonzero gives them
    return np.searchsorted(ranks, np.ravel_multi_index((next_side, next_row, next_column), (4, *padded.shape)))


def _window(box: Floats, shape: tuple[int, ...]) -> tuple[Window, Floats]:
    """Return the pixels of the image that a box overlaps, and the corner (x, y) of the first."""
    limits = np.array(shape[1::-1])
    start = np.clip(np.floor(box[:2] + TOUCH), 0, limits).astype(np.int64)
    stop = np.clip(np.ceil(box[:2] + box[2:] - TOUCH), start, limits).astype(np.int64)
    return (slice(start[1], stop[1]), slice(start[0], stop[0])), start.astype(np.float64)


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
            raise InvalidInputError(f"the run lengths of a mask are damaged at {character!r}.", code="run-lengths")
        value |= (group & 31) << shift
        shift += 5
        if group & 32:
            continue
        if group & 16:
            value -= 1 << shift
        counts.append(value + (counts[-2] if len(counts) > 2 else 0))
        value = shift = 0
    if shift:
        raise InvalidInputError("the run lengths of a mask end within a number.", code="run-lengths")
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
    counts = list(values)
    if any(value != int(value) for value in counts):
        raise InvalidInputError("the run lengths of a mask must be whole numbers.", code="run-lengths")
    return _counts([int(value) for value in counts])


def mask_by_rows(counts: Ints, height: int, width: int) -> Flags:
    """Return the mask of run lengths that go row by row, the first of pixels outside."""
    if height < 1 or width < 1 or height * width > LARGEST_MASK or int(counts.sum()) != height * width:
        raise InvalidInputError(
            f"the run lengths of a mask of {width} x {height} pixels sum to {int(counts.sum())}, not to their product.",
            code="run-lengths",
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
            raise InvalidInputError("the run lengths of a brush end too early.", code="brush-bytes")
        self._at += n
        return int.from_bytes(np.packbits(bits).tobytes(), "big") >> (-n % 8)


def decode_brush(values: Iterable[float], height: int, width: int) -> Flags:
    """Return the mask of a brush of Label Studio: the alpha of an RGBA image, in its own run lengths.

    A header gives the number of values, their bits, and the bits of four kinds of lengths. Then follow blocks: a bit
    that says whether one value is repeated, the kind of length, the length less one, and the value or values.
    """
    numbers = [int(value) for value in values]
    if any(not 0 <= value < 256 for value in numbers):
        raise InvalidInputError("the run lengths of a brush must be bytes, from 0 to 255.", code="brush-bytes")
    if height < 1 or width < 1 or height * width > LARGEST_MASK // 4:
        raise InvalidInputError(f"a brush on {width} x {height} pixels cannot be read.", code="brush-size")
    bits = _Bits(bytes(numbers))
    total, word = bits.read(32), bits.read(5) + 1
    sizes = [bits.read(4) + 1 for _ in range(4)]
    if total != 4 * height * width:
        raise InvalidInputError(
            f"a brush holds {total} values, but its image of {width} x {height} pixels needs {4 * height * width}.",
            code="brush-bytes",
        )
    alpha = np.zeros(total, np.bool_)
    at = 0
    while at < total:
        repeated = bits.read(1)
        stop = at + 1 + bits.read(sizes[bits.read(2)])
        if stop > total:
            raise InvalidInputError("the run lengths of a brush exceed its image.", code="brush-bytes")
        if repeated:
            alpha[at:stop] = bits.read(word) > 0
        else:
            alpha[at:stop] = [bits.read(word) > 0 for _ in range(stop - at)]
        at = stop
    return np.ascontiguousarray(alpha.reshape(height, width, 4)[..., 3])


def _counts(values: list[int]) -> Ints:
    if any(not 0 <= value <= LARGEST_MASK for value in values):
        raise InvalidInputError(f"the run lengths of a mask must lie between 0 and {LARGEST_MASK}.", code="run-lengths")
    return np.array(values, dtype=np.int64)
