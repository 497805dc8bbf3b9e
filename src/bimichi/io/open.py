"""`open_layer` opens whatever a user names; the content of a file decides, not its name."""

import glob
import re
import string
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, nullcontext
from dataclasses import replace
from difflib import get_close_matches
from importlib.util import find_spec
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from bimichi._checks import fills_of, is_xarray
from bimichi._extras import import_optional
from bimichi.errors import InvalidInputError, warn
from bimichi.io.images import (
    AGAIN,
    TIFF,
    ArrayLayer,
    Band,
    Layer,
    check_file,
    check_size,
    has_geotags,
    is_image,
    memory_layer,
    read_arrays,
    read_image,
    reading,
)
from bimichi.io.raster import RasterLayer, gdal_settings, raster_layer
from bimichi.scenes.grid import Grid, Window
from bimichi.sources.bands import Image, check_image, first_few

if TYPE_CHECKING:
    import xarray as xr

START = 132  # bytes that show what a file is
NETCDF, ZIP, NIFTI = (b"CDF", b"\x89HDF"), b"PK", (".nii", ".nii.gz")

ROWS, COLUMNS = ("y", "lat", "latitude", "row"), ("x", "lon", "longitude", "column")
SOURCES = ("source", "band")  # dimensions of sources
PACKED = ("scale_factor", "add_offset")


def open_layer(source: Any, drivers: Sequence[str] = (), label: str = "the array") -> Layer:
    """Open a file, an array, or an object of xarray; rasters and xarray are not read yet.

    `drivers` are those of GDAL that may read files of formats that are not known here; `label` is for errors.
    """
    if not isinstance(source, str | PathLike):
        if is_xarray(source):
            return labelled_layer(source, label)
        if isinstance(source, np.ndarray):
            return _array_layer(source, label)
        raise InvalidInputError(
            f"A source must be a path, an array, or an xarray object, got {type(source).__name__}.",
            code="source-kind",
            value=source,
        )
    path = Path(source)
    if is_store(path):
        return open_store(path)
    with reading(path, "it cannot be opened"), check_file(path).open("rb") as file:
        start = file.read(START)
    if not start:
        raise InvalidInputError(f"Cannot read {path}: it is empty. {AGAIN}", code="file-empty")
    return _by_content(path, start, drivers)


def read_band(path: Path) -> Image:
    """Read a file of one band, such as a mask; integers stay integers, and are -1 where there is no data."""
    layer = open_layer(path)
    if len(layer.bands) != 1:
        raise InvalidInputError(
            f"{path} has {len(layer.bands)} bands; a mask has one. Save it with one band, 0 for "
            "background and above 0 for targets.",
            code="mask-bands",
        )
    check_size(layer.grid.width * layer.grid.height, f"{path}")
    settings = gdal_settings() if isinstance(layer, RasterLayer) else nullcontext()
    with settings, ExitStack() as held:
        (values,) = layer.reader(layer.grid, held)([0], Window(0, 0, *layer.grid.shape))
    stored = layer.bands[0].dtype
    if values.dtype.kind != "f" or stored.kind == "f":
        return np.asarray(values)
    missing = np.isnan(values)
    return np.where(missing, -1, values).astype(np.int64) if missing.any() else values.astype(stored)


def _by_content(path: Path, start: bytes, drivers: Sequence[str]) -> Layer:
    if start.startswith(TIFF) and has_geotags(path):
        return raster_layer(path, drivers)
    if is_image(start):
        image = read_image(path)
        return memory_layer(str(path), image, path=path, colour=image.shape[2:] == (3,))
    if path.name.lower().endswith(NIFTI):
        return nifti_layer(path)
    if start[128:132] == b"DICM":
        return dicom_layer(path)
    if drivers:
        return raster_layer(path, drivers)
    if start.startswith(NETCDF):
        return open_store(path)
    if start.startswith(ZIP):
        arrays = read_arrays(path)
        return memory_layer(str(path), np.stack([*arrays.values()], axis=-1), [*arrays], path=path)
    raise InvalidInputError(
        f"Cannot read {path}: it is neither PNG, JPEG, TIFF, .npy, .npz, Zarr, NetCDF, DICOM nor NIfTI. Convert it, or "
        "name the GDAL driver that reads it (--driver).",
        code="file-format",
    )


def _array_layer(array: Any, label: str) -> Layer:
    holed = isinstance(array, np.ma.MaskedArray)
    if holed:
        kind = np.result_type(array.dtype, np.float32)
        stored, array = array.dtype, array.astype(kind).filled(np.nan)
    image = check_image(array, bands=None)
    check_size(image.size, label)
    layer = memory_layer(label, image, colour=image.shape[2:] == (3,))
    if not holed:
        return layer
    bands = tuple(band._replace(dtype=stored) for band in layer.bands)
    return replace(layer, bands=bands)


def dicom_layer(path: Path) -> ArrayLayer:
    """Read a DICOM image of one frame: values in the units of the modality, padding without data."""
    pydicom = import_optional("pydicom")
    with reading(path, "it is damaged, or has no image"):
        image = pydicom.dcmread(check_file(path))
        frames, samples = int(image.get("NumberOfFrames", 1) or 1), int(image.get("SamplesPerPixel", 1))
        if frames > 1:
            raise InvalidInputError(f"it has {frames} frames; save the one you need as a file.", code="image-frames")
        check_size(int(image.Rows) * int(image.Columns) * samples)
        stored = image.pixel_array
        values = import_optional("pydicom.pixels").apply_modality_lut(stored, image)
    if np.array_equal(values, stored):
        values = stored
    padding = image.get("PixelPaddingValue")
    if padding is not None and values.ndim == 2 and (stored == padding).any():
        values = np.where(stored == padding, np.nan, values.astype(np.float32))
    return memory_layer(str(path), np.ascontiguousarray(values), path=path, colour=values.ndim == 3)


def nifti_layer(path: Path) -> ArrayLayer:
    """Read a NIfTI image; slices of a volume along its third axis are bands, of which one has to be chosen."""
    nibabel = import_optional("nibabel")
    with reading(path, "it is damaged, or not NIfTI"):
        image = nibabel.load(check_file(path))
        shape = tuple(n for k, n in enumerate(image.shape) if k < 3 or n > 1)
        check_size(int(np.prod(shape)))
        plain = image.dataobj.slope == 1 and image.dataobj.inter == 0
        values: Any = np.asarray(image.dataobj.get_unscaled() if plain else image.dataobj).reshape(shape)
        if values.ndim not in (2, 3) or values.dtype.kind not in "buif":
            raise InvalidInputError(
                f"it holds {values.dtype} of shape {values.shape}; save one volume of real numbers.",
                code="volume-shape",
            )
    upright = np.ascontiguousarray(values.swapaxes(0, 1), dtype=values.dtype.newbyteorder("="))
    single = upright.ndim == 2 or upright.shape[2] == 1
    return memory_layer(
        str(path), upright.reshape(upright.shape[:2]) if single else upright, path=path, slices=not single
    )


def open_store(path: Path) -> ArrayLayer:
    """Open a Zarr store or a NetCDF file, without reading its values."""
    xarray = import_optional("xarray")
    with reading(path, "xarray cannot open it"):
        if path.is_dir():
            import_optional("zarr")
            opened = xarray.open_zarr(path, consolidated=False, chunks=None)
        else:
            opened = xarray.open_dataset(path)
    return replace(labelled_layer(opened, str(path)), path=path)


def labelled_layer(data: "xr.DataArray | xr.Dataset", label: str) -> ArrayLayer:
    """Return the layer of an array or a dataset; its planes have the dimensions y and x, in this order if so named."""
    planes, names = _planes(data, label)
    for name, plane in zip(names, planes, strict=True):
        if plane.ndim != 2 or plane.size == 0 or plane.dtype.kind not in "buif":
            raise InvalidInputError(
                f"{label}: source {name or plane.name!r} has the dimensions {', '.join(map(str, plane.dims))} and type "
                f"{plane.dtype}; it must have two, rows and columns, of real numbers. Select one time or level first.",
                code="source-dimensions",
            )
    planes = [_upright(plane) for plane in planes]
    first = planes[0]
    for name, plane in zip(names, planes, strict=True):
        if plane.shape != first.shape:
            raise InvalidInputError(
                f"{label}: source {name!r} has shape {plane.shape}, the first {first.shape}.", code="source-shape"
            )
    bands = tuple(
        Band(k + 1, name, _stored_type(plane), None, plane.attrs.get("units"))
        for k, (plane, name) in enumerate(zip(planes, names, strict=True))
    )
    fills = tuple(tuple(fills_of({**data.attrs, **plane.attrs})) for plane in planes)
    grid = Grid(first.shape[1], first.shape[0], *_georeference(data, first))
    return ArrayLayer(label, bands, grid, planes=tuple(planes), fills=fills)


def _planes(data: "xr.DataArray | xr.Dataset", label: str) -> tuple[list[Any], list[str | None]]:
    if hasattr(data, "data_vars"):
        # A variable without dimensions is no source: it holds the CRS, as files of the CF conventions have it.
        variables = {str(name): variable for name, variable in data.data_vars.items() if variable.ndim}
        if not variables:
            raise InvalidInputError(
                f"{label} is a dataset without variables; it must have one per source.", code="sources-empty"
            )
        if len(variables) > 1 or next(iter(variables.values())).ndim == 2:
            return list(variables.values()), list(variables)
        data = next(iter(variables.values()))
    if data.ndim == 2:
        return [data], [None if data.name is None else str(data.name)]
    dimension = next((name for name in SOURCES if name in data.dims), None)
    if dimension is None:
        raise InvalidInputError(
            f"{label} has the dimensions {', '.join(map(str, data.dims))}, none of which is {' or '.join(SOURCES)}. "
            "Rename the dimension of its sources with rename.",
            code="source-dimension",
        )
    n = data.sizes[dimension]
    labels = data.coords[dimension].values.tolist() if dimension in data.coords else []
    described = data.attrs.get("long_name", ())
    names: list[str | None] = [None] * n
    if labels and all(isinstance(text, str) for text in labels):
        names = list(labels)
    elif isinstance(described, list | tuple) and len(described) == n:
        names = [str(text) for text in described]
    return [data.isel({dimension: k}) for k in range(n)], names


def _upright(plane: Any) -> Any:
    rows, columns = (next((name for name in names if name in plane.dims), None) for names in (ROWS, COLUMNS))
    return plane.transpose(rows, columns) if rows and columns else plane


def _stored_type(plane: Any) -> np.dtype[Any]:
    """Return the type of the values; that in the file, if NaN alone made them floats."""
    own: np.dtype[Any] = plane.dtype
    kept: np.dtype[Any] = np.dtype(plane.encoding.get("dtype", own))
    return kept if kept.kind in "iu" and not any(name in plane.encoding for name in PACKED) else own


def _georeference(data: Any, plane: Any) -> tuple[Any, Any]:
    """Return the CRS, as rioxarray and the CF conventions keep it, and the transform; None where there is none."""
    holders = [data[name] for name in (*data.coords, *getattr(data, "data_vars", ())) if data[name].ndim == 0]
    text = next((h.attrs[key] for h in holders for key in ("crs_wkt", "spatial_ref") if key in h.attrs), None)
    if text is None or find_spec("rasterio") is None:
        return text, None
    crs = import_optional("rasterio.crs").CRS.from_user_input(text)
    affine = import_optional("affine", "raster").Affine
    steps: list[float] = []
    for name in reversed(plane.dims):
        values = np.asarray(plane.coords[name].values, dtype=np.float64) if name in plane.coords else np.empty(0)
        gaps = np.diff(values)
        if gaps.size == 0 or not np.allclose(gaps, gaps[0], rtol=1e-3):
            numbers = next((str(h.attrs["GeoTransform"]).split() for h in holders if "GeoTransform" in h.attrs), None)
            return crs, affine.from_gdal(*map(float, numbers)) if numbers else None
        step = float(values[-1] - values[0]) / (len(values) - 1)
        steps += [step, float(values[0]) - step / 2]
    return crs, affine(steps[0], 0.0, steps[1], 0.0, steps[2], steps[3])


def is_store(path: Path) -> bool:
    """Return whether a folder is a Zarr store."""
    return path.is_dir() and any((path / name).is_file() for name in ("zarr.json", ".zgroup", ".zattrs", ".zmetadata"))


SUFFIXES = (
    *(".jpeg", ".jpg", ".npy", ".png", ".tif", ".tiff"),
    *(".dcm", ".nc", ".nii", ".nii.gz", ".npz", ".zarr"),
)
WILDCARD = re.compile(r"(?:\*|\?|\[[^\]]+\])+")
SELECTION = re.compile(r"(?P<path>.+)\[(?P<bands>[^\[\]]+)\]")


def stem_of(path: Path) -> str:
    """Return the name of a file without its suffix, which may have two parts."""
    return path.name[: -len(".nii.gz")] if path.name.lower().endswith(".nii.gz") else path.stem


def selected_bands(source: str) -> tuple[str, tuple[str, ...]]:
    """Split an argument into a path and the bands chosen in brackets behind it, if there are any."""
    match = SELECTION.fullmatch(source)
    if match is None or Path(source).exists():
        return source, ()
    path = match["path"]
    if not Path(path).exists() and not path.lower().endswith(SUFFIXES):
        return source, ()  # brackets of a pattern
    bands = tuple(part.strip() for part in match["bands"].split(","))
    if not all(bands):
        raise InvalidInputError(
            f"{source}: name bands by description or number, separated by commas, as in [B3,B8].", code="bands-list"
        )
    return path, bands


def existing_path(path: Path) -> Path:
    """Return a path that exists; that it does not is the first thing to say."""
    if not path.exists():
        raise InvalidInputError(
            f"There is no file or folder {path}. {_alternative_sentence(path)}", code="file-missing"
        )
    return path


def _alternative_sentence(path: Path) -> str:
    """Return a sentence on what is there instead of a path that is not."""
    if str(path) == "-":
        return "Standard input is not read; name a file."
    parent = next((folder for folder in path.parents if folder.exists()), Path())
    if parent != path.parent:
        return f"({parent} exists.) Check the path."
    names = _names_in(parent)
    stems = {Path(name).stem: name for name in names}
    alike = [stems[stem] for stem in get_close_matches(path.stem, stems, 1)]
    where = "The current folder" if parent == Path() else f"The folder {parent}"
    return f"Did you mean {parent / alike[0]}?" if alike else f"{where} has {first_few(names) or 'no files'}."


def _names_in(folder: Path) -> list[str]:
    try:
        return sorted(file.name for file in folder.iterdir() if not file.name.startswith("."))
    except OSError:
        return []


def is_pattern(source: str) -> bool:
    """Return whether text has wildcards and is not the name of a file."""
    return WILDCARD.search(source) is not None and not Path(source).exists()


def is_many(source: str) -> bool:
    """Return whether an argument is a folder or a pattern, so that it may mean the files of many scenes."""
    if is_store(Path(source)):
        return False
    return Path(source).is_dir() or is_pattern(source)


def files_by_scene(source: str) -> Mapping[str, Path]:
    """Return the files of a folder or a pattern, by scene."""
    if Path(source).is_dir():
        files = [p for p in Path(source).iterdir() if p.name.lower().endswith(SUFFIXES) and not p.name.startswith(".")]
        for file in files:
            if not is_store(file):
                check_file(file)
        pairs = [(stem_of(file), file) for file in sorted(files)]
        kinds = f"image files ({', '.join(SUFFIXES)})"
    else:
        if "**" in source:
            raise InvalidInputError(f"{source}: ** is not supported; write one * per folder.", code="pattern")
        paths = map(Path, sorted(glob.glob(source)))  # noqa: PTH207
        files = [path for path in paths if path.is_file() or is_store(path)]
        pairs = [(_wildcard_text(source, file), file) for file in files]
        kinds = "files"
    if not pairs:
        raise InvalidInputError(f"{source} has no {kinds}. {_contents_sentence(source)}", code="pattern-empty")
    by_scene: dict[str, Path] = {}
    for scene, file in pairs:
        if by_scene.setdefault(scene, file) is not file:
            raise InvalidInputError(
                f"{by_scene[scene]} and {file} both belong to scene {scene!r}; remove one of them.",
                code="scene-file-twice",
            )
    return by_scene


def _contents_sentence(source: str) -> str:
    """Return a sentence on what a folder holds instead of images, or that of a pattern instead of what it matches."""
    folder = Path(source)
    if not folder.is_dir():
        folder = folder.parent
        if not folder.is_dir():
            return f"There is no folder {folder}." if not is_pattern(str(folder)) else "Check the pattern."
    names = [name + "/" if (folder / name).is_dir() else name for name in _names_in(folder)]
    return f"The folder {folder} has {first_few(names)}; name the one you mean." if names else f"{folder} is empty."


def warn_if_expanded(files: Sequence[Path]) -> None:
    """Warn if the files of one scene look like two sources of several, as when the shell expands patterns."""
    stems = [stem_of(file) for file in files]
    by_folder = [(file.parent.name, (file.parent.parent / stem_of(file)).as_posix()) for file in files]
    scenes_of = [stem.rstrip(string.ascii_letters).rstrip("_-. ") for stem in stems]
    by_ending = [(stem[len(scene) :], scene) for stem, scene in zip(stems, scenes_of, strict=True)]
    numbered = all(any(map(str.isdigit, scene)) for _, scene in by_ending)  # as scenes are, but seldom sensors
    for pairs, ending in ((by_folder, ""), (by_ending, by_ending[0][0])):
        sources, scenes = ({pair[k] for pair in pairs} for k in (0, 1))
        whole = len(sources) * len(scenes) == len(set(pairs)) == len(files)
        if whole and min(len(sources), len(scenes)) > 1 and (numbered or not ending) and all(map(all, pairs)):
            one_place = len({file.parent for file in files}) <= len(sources)
            pattern = (files[0].parent / f"*{ending}{files[0].suffix}").as_posix()
            example = f", as in '{pattern}'," if one_place else ","
            warn(
                f"{len(files)} files, {first_few([str(file) for file in files])}, are taken for {len(files)} sources "
                f"of one scene, but look like {len(scenes)} scenes of {len(sources)} sources. Quote patterns"
                f"{example} or the shell replaces each by all its files.",
                code="sources-look-like-scenes",
                stacklevel=2,
            )
            return


def _wildcard_text(pattern: str, file: Path) -> str:
    """Return the text that the wildcards of a pattern match in a file's path, without its suffix."""
    fixed = [re.escape(text) for text in WILDCARD.split(Path(pattern).with_suffix("").as_posix())]
    match = re.fullmatch("([^/]*)".join(fixed), file.with_suffix("").as_posix())
    return "_".join(text for text in match.groups() if text) if match else file.stem


def name_of_source(source: str) -> str:
    """Return the name of a source by its file or folder, or by the fixed text of its pattern."""
    if not is_many(source):
        return stem_of(Path(source))
    if Path(source).is_dir():
        return Path(source).resolve().name
    parts = (Path(source).stem, *reversed(Path(source).parent.parts))
    fixed = (WILDCARD.sub("", part).strip("_-. ") for part in parts)
    return next(filter(None, fixed), "source")
