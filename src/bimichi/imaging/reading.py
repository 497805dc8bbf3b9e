"""Images of files, and files of images: PNG, JPEG, TIFF and .npy, without loss and without guesses."""

from collections.abc import Callable, Iterable, Sequence
from os import PathLike
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from bimichi._extras import import_optional
from bimichi.errors import InvalidInputError
from bimichi.measures.base import check_names

__all__ = ["read_image", "read_sources"]

ORIENTATION = 274
"""The tag of EXIF and TIFF that says how the camera was held."""

UPRIGHT: dict[int, Callable[[NDArray[Any]], NDArray[Any]]] = {
    1: lambda image: image,
    2: lambda image: image[:, ::-1],
    3: lambda image: image[::-1, ::-1],
    4: lambda image: image[::-1],
    5: lambda image: image.swapaxes(0, 1),
    6: lambda image: image.swapaxes(0, 1)[:, ::-1],
    7: lambda image: image[::-1, ::-1].swapaxes(0, 1),
    8: lambda image: image.swapaxes(0, 1)[::-1],
}

WITH_ALPHA = {"P": "RGBA", "PA": "RGBA", "1": "LA", "L": "LA", "RGB": "RGBA"}
"""What shows the colours of a palette, or the transparency that one grey level or colour stands for."""

PLAIN_MODES = ("1", "L", "LA", "RGB", "RGBA", "I", "I;16", "I;16B", "I;16L", "F")
ALPHA_SAMPLES = (1, 2)  # of TIFF: colours multiplied by it, or not
PLAIN_COLOURS = (0, 1, 2)  # of TIFF: white is 0, black is 0, RGB


def read_image(path: str | PathLike[str]) -> NDArray[Any]:
    """Read a PNG, JPEG, TIFF or .npy file as it is: values are neither rounded nor rescaled.

    Parameters
    ----------
    path : str or path
        The file; its content says what it is, not its name.

    Returns
    -------
    image : ndarray of shape (height, width) or (height, width, n_bands)
        In the type of the file: bool, uint8, uint16, float32, ...

    Notes
    -----
    Images are turned upright as their EXIF or TIFF orientation says, and colours of a palette are looked up (RGB). An
    alpha channel is dropped if it is opaque everywhere. What would need a guess is an error that names the remedy:
    transparent pixels, several pages, colours other than grey and RGB, 16-bit colour in PNG, which the decoder rounds
    to 8 bits. A .npy file is never unpickled.
    """
    try:
        with Path(path).open("rb") as file:
            start = file.read(26)
            file.seek(0)
            return _checked(_reader(start)(file))
    except ImportError:
        raise
    except InvalidInputError as error:
        raise InvalidInputError(f"Cannot read {path!s}: {error}") from error
    except OSError as error:
        reason = f"{error.strerror}." if error.strerror else f"it is damaged ({error})."  # Pillow raises OSError, too
        raise InvalidInputError(f"Cannot read {path!s}: {reason}") from error
    except Exception as error:  # decoders raise whatever they stumble over
        raise InvalidInputError(f"Cannot read {path!s}: it is damaged, or no path to a file ({error}).") from error


def read_sources(
    paths: str | PathLike[str] | Iterable[str | PathLike[str]], names: Sequence[str] | None = None
) -> tuple[list[NDArray[Any]], list[str]]:
    """Read sources: several files of one band each, or one file of several bands.

    Parameters
    ----------
    paths : path, or sequence of paths
        What `read_image` reads; all of one size.
    names : sequence of str, optional
        Names of the sources; by default the names of the files without folder and ending, made distinct by a number.

    Returns
    -------
    planes : list of ndarray, shape (height, width)
        Values as in the files; `to_bipolar` and other recipes map them to [-1, 1].
    names : list of str
        One for each plane.
    """
    listed = [paths] if isinstance(paths, str | PathLike) else list(paths)
    if not listed:
        raise InvalidInputError("paths is empty; name at least one file.")
    images = [read_image(path) for path in listed]
    stems = [Path(path).stem for path in listed]
    if len(images) == 1 and images[0].ndim == 3:
        images = [np.ascontiguousarray(band) for band in np.moveaxis(images[0], -1, 0)]
        stems = [f"{stems[0]} {k + 1}" for k in range(len(images))]
    for path, image in zip(listed, images, strict=False):
        if image.ndim == 3:
            raise InvalidInputError(
                f"{path!s} has {image.shape[2]} bands; of several files each must have one. Make one of them first, "
                "e.g. with bimichi.imaging.grey(read_image(path)), or pass this file alone."
            )
        if image.shape != images[0].shape:
            raise InvalidInputError(
                f"{listed[0]!s} is {_size(images[0])} and {path!s} is {_size(image)}; sources must be of one size, "
                "pixel upon pixel. Register and resample them first."
            )
    return images, list(check_names(_distinct(stems) if names is None else names, len(images)))


def _reader(start: bytes) -> Callable[[IO[bytes]], NDArray[Any]]:
    """Choose by the first bytes of a file."""
    if start.startswith(b"\x93NUMPY"):
        return lambda file: np.asarray(np.load(file, allow_pickle=False))
    if start.startswith((b"II*\0", b"MM\0*", b"II+\0", b"MM\0+")):
        return _read_tiff
    if start.startswith(b"\x89PNG\r\n\x1a\n"):
        if start[24:25] == b"\x10" and start[25:26] != b"\0":  # bit depth and colour type
            raise InvalidInputError(
                "it is a PNG with 16-bit colour or alpha, which would be rounded to 8 bits. Save it as TIFF, "
                "or each band as a grey PNG."
            )
        return _read_pillow
    if start.startswith(b"\xff\xd8\xff"):
        return _read_pillow
    raise InvalidInputError("it is neither PNG, JPEG, TIFF nor .npy; convert it to one of these.")


def _read_pillow(file: IO[bytes]) -> NDArray[Any]:
    pillow = import_optional("PIL.Image")
    with pillow.open(file, formats=("PNG", "JPEG", "TIFF")) as image:
        if image.format == "PNG" and getattr(image, "n_frames", 1) > 1:
            raise InvalidInputError(f"it has {image.n_frames} frames; save the one that is meant as a file of its own.")
        image.load()
        orientation = image.getexif().get(ORIENTATION, 1)
        shown = image
        if image.mode in ("P", "PA") or "transparency" in image.info:
            if image.mode not in WITH_ALPHA:
                raise InvalidInputError("one of its grey levels means transparent; remove that, and save it again.")
            shown = image.convert(WITH_ALPHA[image.mode])
        if shown.mode not in PLAIN_MODES:
            raise InvalidInputError(f"its colours are {shown.mode}; convert it to grey or RGB.")
        array = np.asarray(shown)
        if shown.mode in ("LA", "RGBA"):
            array = _without_alpha(array)
    return _upright(array, orientation)


def _read_tiff(file: IO[bytes]) -> NDArray[Any]:
    with import_optional("tifffile").TiffFile(file) as tiff:
        pages = [page for page in tiff.pages if not page.is_reduced]
        if len(pages) != 1:
            raise InvalidInputError(f"it has {len(pages)} pages; save the one that is meant as a file of its own.")
        page = pages[0]
        try:
            if page.photometric not in PLAIN_COLOURS or page.axes not in ("YX", "YXS", "SYX"):
                raise ValueError(f"colours {page.photometric!s}, axes {page.axes}")
            array = page.asarray()
        except (ImportError, ValueError) as error:
            if page.samplesperpixel > 1 and page.bitspersample != 8:  # which Pillow would round
                raise InvalidInputError(
                    f"it needs more than tifffile alone ({error}). Save it uncompressed."
                ) from error
            file.seek(0)
            return _read_pillow(file)
        if page.axes == "SYX":
            array = np.moveaxis(array, 0, -1)
        if page.photometric == 0 and array.dtype.kind in "bu":
            array = ~array
        if any(sample in ALPHA_SAMPLES for sample in page.extrasamples):
            array = _without_alpha(array)
        tag = page.tags.get(ORIENTATION)
    return _upright(array, tag.value if tag else 1)


def _without_alpha(image: NDArray[Any]) -> NDArray[Any]:
    opaque = np.iinfo(image.dtype).max if image.dtype.kind in "iu" else 1
    through = int((image[..., -1] != opaque).sum())
    if through:
        raise InvalidInputError(
            f"it has an alpha channel with {through:,} transparent pixels, whose values mean nothing. Put it on a "
            "background, or remove the alpha channel, and save it again."
        )
    return image[..., :-1]


def _upright(image: NDArray[Any], orientation: Any) -> NDArray[Any]:
    if orientation not in UPRIGHT:
        raise InvalidInputError(
            f"its orientation is {orientation!r}, which is none; turn it upright and save it again."
        )
    return UPRIGHT[orientation](image)


def _checked(image: NDArray[Any]) -> NDArray[Any]:
    """Return a contiguous array in the byte order of this machine; one band has no third axis."""
    if image.ndim == 3 and image.shape[2] == 1:
        image = image[..., 0]
    if image.ndim not in (2, 3) or image.size == 0:
        raise InvalidInputError(
            f"it holds an array of shape {image.shape}; an image has (height, width) or (height, width, n_bands)."
        )
    if image.dtype.kind not in "buif":
        raise InvalidInputError(f"it holds values of type {image.dtype}; an image has real numbers.")
    return np.ascontiguousarray(image, dtype=image.dtype.newbyteorder("="))


def _size(image: NDArray[Any]) -> str:
    return f"{image.shape[1]} x {image.shape[0]} pixels"


def _distinct(names: list[str]) -> list[str]:
    """Append numbers to names that occur more than once."""
    taken = set(names)
    seen: set[str] = set()
    result = []
    for name in names:
        number, candidate = 1, name
        while candidate in seen or (number > 1 and candidate in taken):
            number += 1
            candidate = f"{name} {number}"
        seen.add(candidate)
        result.append(candidate)
    return result
