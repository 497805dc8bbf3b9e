"""Layers of medical images: DICOM by pydicom, NIfTI by nibabel; the extra `medical` installs both."""

from pathlib import Path
from typing import Any

import numpy as np

from bimichi._extras import import_optional
from bimichi.errors import InvalidInputError
from bimichi.imaging.layers import MemoryLayer, memory_layer
from bimichi.imaging.limits import AGAIN, check_file, check_size

NIFTI = (".nii", ".nii.gz")


def dicom_layer(path: Path) -> MemoryLayer:
    """Read a DICOM image of one frame: values in the units of the modality, padding without data."""
    pydicom = import_optional("pydicom")
    try:
        image = pydicom.dcmread(check_file(path))
        frames, samples = int(image.get("NumberOfFrames", 1) or 1), int(image.get("SamplesPerPixel", 1))
        if frames > 1:
            raise InvalidInputError(f"Cannot read {path}: it has {frames} frames; save the one you need as a file.")
        check_size(int(image.Rows) * int(image.Columns) * samples, f"{path}")
        stored = image.pixel_array
        values = import_optional("pydicom.pixels").apply_modality_lut(stored, image)
    except (ImportError, InvalidInputError):
        raise
    except Exception as error:  # pydicom raises all kinds of errors
        raise InvalidInputError(f"Cannot read {path}: it is damaged, or has no image ({error}). {AGAIN}") from error
    if np.array_equal(values, stored):
        values = stored
    padding = image.get("PixelPaddingValue")
    if padding is not None and values.ndim == 2 and (stored == padding).any():
        values = np.where(stored == padding, np.nan, values.astype(np.float32))
    return memory_layer(str(path), np.ascontiguousarray(values), path=path, colour=values.ndim == 3)


def nifti_layer(path: Path) -> MemoryLayer:
    """Read a NIfTI image; slices of a volume along its third axis are bands, of which one has to be chosen."""
    nibabel = import_optional("nibabel")
    try:
        image = nibabel.load(check_file(path))
        shape = tuple(n for k, n in enumerate(image.shape) if k < 3 or n > 1)
        check_size(int(np.prod(shape)), f"{path}")
        plain = image.dataobj.slope == 1 and image.dataobj.inter == 0
        values: Any = np.asarray(image.dataobj.get_unscaled() if plain else image.dataobj).reshape(shape)
    except InvalidInputError:
        raise
    except Exception as error:
        raise InvalidInputError(f"Cannot read {path}: it is damaged, or not NIfTI ({error}). {AGAIN}") from error
    if values.ndim not in (2, 3) or values.dtype.kind not in "buif":
        raise InvalidInputError(
            f"Cannot read {path}: it holds {values.dtype} of shape {values.shape}; save one volume of real numbers."
        )
    upright = np.ascontiguousarray(values.swapaxes(0, 1), dtype=values.dtype.newbyteorder("="))
    one = upright.ndim == 2 or upright.shape[2] == 1
    return memory_layer(str(path), upright.reshape(upright.shape[:2]) if one else upright, path=path, slices=not one)
