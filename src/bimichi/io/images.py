"""Images from files (PNG, JPEG, TIFF, .npy), without loss and without guesses; layers of bands; limits of size."""

import os
import stat
import zipfile
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from itertools import count
from math import prod
from os import PathLike
from pathlib import Path
from typing import IO, Any, NamedTuple, Self

import numpy as np

from bimichi._checks import to_nan
from bimichi._extras import import_optional
from bimichi.errors import InvalidInputError
from bimichi.scenes.grid import Grid, Window
from bimichi.sources.bands import Image, float_type

MAX_PIXELS = 500_000_000
"""Values (pixels times bands) that an image may unpack to, unless the environment variable of this name allows more."""

VARIABLE = "BIMICHI_MAX_PIXELS"

AGAIN = "Copy or export it again."
"""The remedy for damaged files."""

KINDS = (
    (stat.S_ISDIR, "a directory"),
    (stat.S_ISFIFO, "a named pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)


def check_file(path: str | PathLike[str]) -> Path:
    """Return the path of a regular file that exists; anything else, such as a pipe, is refused before it is opened."""
    try:
        mode = Path(path).stat().st_mode
    except (OSError, TypeError, ValueError) as error:
        reason = getattr(error, "strerror", None) or f"it is not a path to a file ({error})"
        raise InvalidInputError(f"Cannot read {path!s}: {reason}.", code="file-unreadable") from error
    if not stat.S_ISREG(mode):
        kind = next((name for test, name in KINDS if test(mode)), "not a regular file")
        raise InvalidInputError(f"Cannot read {path!s}: it is {kind}; name a file.", code="file-kind")
    return Path(path)


@contextmanager
def reading(path: str | PathLike[str], fault: str, reason: Callable[[Exception], str] = str) -> Iterator[None]:
    """Turn whatever is raised while a file is read into an error that names it; `fault` says what may be wrong."""
    try:
        yield
    except ImportError:
        raise
    except MemoryError as error:  # which does not mean that the file is damaged
        raise InvalidInputError(
            f"Cannot read {path!s}: there is not enough memory for it. Close other programs, or use a smaller file.",
            code="memory",
        ) from error
    except InvalidInputError as error:
        if str(path) in str(error):  # which names the file already
            raise
        raise InvalidInputError(
            f"Cannot read {path!s}: {error}", code=error.code, argument=error.argument, value=error.value
        ) from error
    except Exception as error:  # decoders raise all kinds of errors
        if isinstance(error, OSError) and error.strerror:
            raise InvalidInputError(f"Cannot read {path!s}: {error.strerror}.", code="file-unreadable") from error
        raise InvalidInputError(
            f"Cannot read {path!s}: {fault} ({reason(error)}). {AGAIN}", code="image-damaged"
        ) from error


def check_size(n_values: int, subject: str = "it") -> None:
    """Raise an error if an image would unpack to more values than are allowed."""
    limit = pixel_limit()
    if n_values > limit:
        raise InvalidInputError(
            f"{subject} unpacks to {n_values:,} values (pixels times bands), more than the limit of {limit:,}. If the "
            f"file is what you expect, set the environment variable {VARIABLE}={n_values} and run it again.",
            code="image-large",
        )


def pixel_limit() -> int:
    """Return how many values an image may unpack to."""
    text = os.environ.get(VARIABLE)
    if text is None:
        return MAX_PIXELS
    if not text.isdecimal() or int(text) < 1:
        raise InvalidInputError(
            f"The environment variable {VARIABLE} must be a whole number above 0, got {text!r}.",
            code="limit-variable",
            value=text,
        )
    return int(text)


ORIENTATION = 274  # the tag of EXIF and TIFF for the orientation of the camera
STEPS = ((1, 1), (1, -1), (-1, -1), (-1, 1))
"""Along rows and columns, of the orientations 1 to 4; the same of 5 to 8, which are transposed."""

WITH_ALPHA = {"P": "RGBA", "PA": "RGBA", "1": "LA", "L": "LA", "RGB": "RGBA"}
"""Modes that show the colours of a palette, or the transparency of one grey level or colour."""

PNG, TIFF, JPEG, NUMPY = b"\x89PNG\r\n\x1a\n", (b"II*\0", b"MM\0*", b"II+\0", b"MM\0+"), b"\xff\xd8\xff", b"\x93NUMPY"
"""First bytes of files."""

GEO_TAGS = {33550, 33922, 34264, 34735, 42112, 42113, 50844}
"""Of a TIFF: scale, tie points, transform, keys; metadata of GDAL, such as names of bands; nodata; polynomials."""
WORLD_FILES = (".tfw", ".tifw", ".tiffw", ".wld")  # which georeference a TIFF without tags
PLAIN_MODES = ("1", "L", "LA", "RGB", "RGBA", "I", "I;16", "I;16B", "I;16L", "F")
ALPHA_SAMPLES = (1, 2)  # of TIFF: colours multiplied by it, or not
PLAIN_COLOURS = (0, 1, 2)  # of TIFF: white is 0, black is 0, RGB


def read_image(path: str | PathLike[str]) -> Image:
    """Read a PNG, JPEG, TIFF or .npy file as it is: values are neither rounded nor rescaled.

    Parameters
    ----------
    path : str or path
        The file; its content decides its format, not its name.

    Returns
    -------
    image : ndarray of shape (height, width) or (height, width, n_bands)
        In the type of the file: bool, uint8, uint16, float32, ...

    Notes
    -----
    Images are turned upright according to their EXIF or TIFF orientation, and palette colours are converted to RGB. An
    alpha channel is dropped if it is opaque everywhere. What would need a guess is an error that names the remedy:
    transparent pixels, several pages, colours other than grey and RGB, 16-bit colour in PNG, which the decoder rounds
    to 8 bits. A .npy file is never unpickled.
    """
    with reading(path, "it is damaged"), check_file(path).open("rb") as file:
        return _as_image(_decode(file))


def is_image(start: bytes) -> bool:
    """Return whether a file with these first bytes is PNG, JPEG, TIFF or .npy."""
    return start.startswith((PNG, JPEG, NUMPY, *TIFF))


def has_geotags(path: Path) -> bool:
    """Return whether a TIFF needs GDAL: tags or a file beside it may georeference it, name bands, or declare nodata."""
    beside = (*(path.with_suffix(ending) for ending in WORLD_FILES), path.with_name(f"{path.name}.aux.xml"))
    if any(file.exists() for file in beside):
        return True
    tifffile = import_optional("tifffile")
    try:
        with tifffile.TiffFile(path) as opened:
            return any(tag.code in GEO_TAGS for tag in opened.pages[0].tags)
    except Exception:  # decoders raise all kinds of errors; they are reported where the file is read
        return False


def size_of(image: Image) -> str:
    """Return the size of an image for errors."""
    return f"{image.shape[1]} x {image.shape[0]} pixels"


def distinct_names(names: Sequence[str]) -> list[str]:
    """Append numbers to names that occur more than once: "ir", "ir 2"."""
    result: list[str] = []
    for name in names:
        numbered = (f"{name} {number}" for number in count(2))
        free = (candidate for candidate in numbered if candidate not in {*names, *result})
        result.append(next(free) if name in result else name)
    return result


def _decode(file: IO[bytes]) -> Image:
    start = file.read(26)
    file.seek(0)
    if start.startswith(NUMPY):
        return _read_numpy(file)
    if start.startswith(TIFF):
        return _read_tiff(file)
    if start.startswith(JPEG):
        return _read_pillow(file, "Jpeg")
    if not start.startswith(PNG):
        raise InvalidInputError(
            "it is neither PNG, JPEG, TIFF nor .npy; convert it to one of these.", code="image-format"
        )
    if start[24:25] == b"\x10" and start[25:26] != b"\0":  # bit depth and colour type
        raise InvalidInputError(
            "it is a PNG with 16-bit colour or alpha, which would be rounded to 8 bits. Save it as TIFF, "
            "or each band as a grey PNG.",
            code="image-png-16",
        )
    return _read_pillow(file, "Png")


def read_arrays(path: Path) -> dict[str, Image]:
    """Read the arrays of an .npz file by name, each of which is a band."""
    with reading(path, "it is damaged, or not an .npz file"), zipfile.ZipFile(check_file(path)) as archive:
        members = [name for name in archive.namelist() if name.endswith(".npy")]
        if not members:
            raise InvalidInputError("it holds no array.", code="image-empty")
        check_size(sum(archive.getinfo(name).file_size for name in members))
        arrays = {}
        for name in members:
            with archive.open(name) as file:
                arrays[name.removesuffix(".npy")] = _as_image(np.lib.format.read_array(file, allow_pickle=False))
    for name, array in arrays.items():
        if array.ndim != 2 or array.shape != arrays[next(iter(arrays))].shape:
            raise InvalidInputError(
                f"Cannot read {path}: its arrays must be bands of one size, got {name} {array.shape}.",
                code="image-arrays",
            )
    return arrays


def _read_numpy(file: IO[bytes]) -> Image:
    version = np.lib.format.read_magic(file)
    header = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    check_size(prod(header(file)[0]))
    file.seek(0)
    return np.asarray(np.load(file, allow_pickle=False))


def _read_pillow(file: IO[bytes], kind: str) -> Image:
    import_optional("PIL.Image")
    plugin = import_optional(f"PIL.{kind}ImagePlugin")  # not PIL.Image.open, which has a limit of pixels of its own
    with getattr(plugin, f"{kind}ImageFile")(file) as image:
        check_size(image.width * image.height * len(image.getbands()))
        if image.format == "PNG" and getattr(image, "n_frames", 1) > 1:
            raise InvalidInputError(
                f"it has {image.n_frames} frames; save the one you need as a separate file.", code="image-frames"
            )
        image.load()
        orientation = image.getexif().get(ORIENTATION, 1)
        shown = image
        if image.mode in ("P", "PA") or "transparency" in image.info:
            if image.mode not in WITH_ALPHA:
                raise InvalidInputError(
                    "one of its grey levels stands for transparent pixels; remove the transparency and save it again.",
                    code="image-alpha",
                )
            shown = image.convert(WITH_ALPHA[image.mode])
        if shown.mode not in PLAIN_MODES:
            raise InvalidInputError(f"its colour mode is {shown.mode}; convert it to grey or RGB.", code="image-mode")
        array = np.asarray(shown)
        if shown.mode in ("LA", "RGBA"):
            array = _without_alpha(array)
    return _upright(array, orientation)


def _read_tiff(file: IO[bytes]) -> Image:
    with import_optional("tifffile").TiffFile(file) as tiff:
        pages = [page for page in tiff.pages if not page.is_reduced]
        if len(pages) != 1:
            raise InvalidInputError(
                f"it has {len(pages)} pages; save the one you need as a separate file.", code="image-frames"
            )
        page = pages[0]
        check_size(prod(page.shape))
        try:
            if page.photometric not in PLAIN_COLOURS or page.axes not in ("YX", "YXS", "SYX"):
                raise ValueError(f"colours {page.photometric!s}, axes {page.axes}")
            array = page.asarray()
        except (ImportError, ValueError) as error:
            if page.samplesperpixel > 1 and page.bitspersample != 8:  # which Pillow would round
                raise InvalidInputError(
                    f"tifffile alone cannot decode it ({error}). Save it uncompressed.", code="image-compression"
                ) from error
            file.seek(0)
            return _read_pillow(file, "Tiff")
        if page.axes == "SYX":
            array = np.moveaxis(array, 0, -1)
        if page.photometric == 0 and array.dtype.kind in "bu":
            array = ~array
        if any(sample in ALPHA_SAMPLES for sample in page.extrasamples):
            array = _without_alpha(array)
        tag = page.tags.get(ORIENTATION)
    return _upright(array, tag.value if tag else 1)


def _without_alpha(image: Image) -> Image:
    opaque = np.iinfo(image.dtype).max if image.dtype.kind in "iu" else 1
    through = int((image[..., -1] != opaque).sum())
    if through:
        raise InvalidInputError(
            f"it has an alpha channel with {through:,} transparent pixels, whose values are undefined. Put it on a "
            "background, or remove the alpha channel, and save it again.",
            code="image-alpha",
        )
    return image[..., :-1]


def _upright(image: Image, orientation: Any) -> Image:
    if orientation not in range(1, 9):
        raise InvalidInputError(
            f"its orientation {orientation!r} is unknown; rotate it upright and save it again.",
            code="image-orientation",
        )
    down, across = STEPS[(orientation - 1) % 4]
    return (image.swapaxes(0, 1) if orientation > 4 else image)[::down, ::across]


def _as_image(image: Image) -> Image:
    """Return a contiguous array in native byte order; one band has no third axis."""
    if image.ndim == 3 and image.shape[2] == 1:
        image = image[..., 0]
    if image.ndim not in (2, 3) or image.size == 0:
        raise InvalidInputError(
            f"it holds an array of shape {image.shape}; an image has (height, width) or (height, width, n_bands).",
            code="image-shape",
        )
    if image.dtype.kind not in "buif":
        raise InvalidInputError(f"it holds values of type {image.dtype}; an image has real numbers.", code="image-type")
    return np.ascontiguousarray(image, dtype=image.dtype.newbyteorder("="))


ReadBands = Callable[[Sequence[int], Window], list[Image]]
"""Reads a window of some bands: values as stored, and NaN where there is no data; the next call may overwrite it."""


class Band(NamedTuple):
    """One band of a layer."""

    number: int
    """In its file, from 1."""
    description: str | None
    dtype: np.dtype[Any]
    """As stored; what has no data is read as floats."""
    nodata: float | None = None
    units: str | None = None


@dataclass(frozen=True, eq=False)
class Layer(ABC):
    """Bands on one grid."""

    label: str
    """Its path, or what it is, for errors."""
    bands: tuple[Band, ...]
    grid: Grid
    colour: bool = False
    """Whether its bands are red, green and blue, so that they are one source unless they are the only ones."""
    path: Path | None = None
    slices: bool = False
    """Whether bands are slices of a volume, of which one has to be chosen."""

    @property
    def placed(self) -> bool:
        """True if it is georeferenced."""
        return self.grid.placed

    def select(self, wanted: Sequence[str]) -> Self:
        """Return the same layer with these bands, by description or number, in this order."""
        chosen = [self._find(name) for name in wanted]
        if len(set(chosen)) < len(chosen):
            raise InvalidInputError(
                f"{self.label}: the bands {', '.join(wanted)} name one band twice.", code="bands-twice"
            )
        return replace(self, bands=tuple(self.bands[k] for k in chosen), colour=False)

    def _find(self, name: str) -> int:
        described = [k for k, band in enumerate(self.bands) if band.description == name]
        numbered = [k for k, band in enumerate(self.bands) if str(band.number) == name]
        if len(described or numbered) != 1:
            listed = ", ".join(
                f"{band.number} ({band.description})" if band.description else str(band.number)
                for band in self.bands[:40]
            )
            raise InvalidInputError(
                f"{self.label} has {'several bands' if described else 'no band'} {name!r}; it has {listed}. "
                "Name bands by description or number, such as [1,3].",
                code="band-unknown",
            )
        return (described or numbered)[0]

    @abstractmethod
    def reader(self, grid: Grid, held: ExitStack) -> ReadBands:
        """Open it within the context `held`, resampled to the grid if it lies on another; for one thread at a time."""


@dataclass(frozen=True, eq=False)
class ArrayLayer(Layer):
    """Bands that are arrays in memory, or planes of xarray, which may be read when a window is asked for."""

    planes: tuple[Any, ...] = ()
    """By the number of a band, less 1."""
    fills: tuple[Sequence[float], ...] = ()
    """Values of each plane that mean that there is no data; none for all planes by default."""

    def reader(self, grid: Grid, held: ExitStack) -> ReadBands:
        if self.grid.matches(grid):
            return lambda bands, window: [self._values(k, window.slices) for k in bands]
        whole = [resized(self._values(k, np.s_[:, :]), grid.shape) for k in range(len(self.bands))]
        return lambda bands, window: [whole[k][window.slices] for k in bands]

    def _values(self, k: int, part: tuple[slice, slice]) -> Image:
        at = self.bands[k].number - 1
        try:
            values = np.asarray(self.planes[at][part])
        except Exception as error:  # whatever the storage raises
            raise InvalidInputError(f"Cannot read {self.label}: {error}.", code="file-unreadable") from error
        return to_nan(values, self.fills[at], float_type(values.dtype)) if self.fills else values


def memory_layer(label: str, image: Image, descriptions: Sequence[str | None] = (), **options: Any) -> ArrayLayer:
    """Return the layer of an image of shape (height, width) or (height, width, n_bands)."""
    planes = (image,) if image.ndim == 2 else tuple(image[..., k] for k in range(image.shape[2]))
    names = [*descriptions] or [None] * len(planes)
    bands = tuple(Band(k + 1, name, image.dtype) for k, name in enumerate(names))
    return ArrayLayer(label, bands, Grid(image.shape[1], image.shape[0]), planes=planes, **options)


def resized(array: Image, shape: tuple[int, int]) -> Image:
    """Resample an image without georeference, which is taken to show the same area, to another size, bilinearly."""
    check_size(shape[0] * shape[1])
    resize = import_optional("skimage.transform").resize
    values = array.astype(float_type(array.dtype))
    small = shape[0] < array.shape[0] or shape[1] < array.shape[1]
    missing = np.isnan(values)
    how = {"order": 1, "mode": "edge", "preserve_range": True, "anti_aliasing": small}
    if not missing.any():
        return np.asarray(resize(values, shape, **how), dtype=values.dtype)
    holes = resize(missing.astype(np.float32), shape, **how) > 0
    filled = np.asarray(resize(np.where(missing, np.nanmean(values) if not missing.all() else 0, values), shape, **how))
    return np.where(holes, np.nan, filled).astype(values.dtype)
