import random
import struct
import sys
import zlib
from collections import Counter

import numpy as np
import pytest
import tifffile
from PIL import Image, ImageOps
from refusals import refused

from bimichi import BimichiError, InvalidInputError
from bimichi.io import read_image, read_sources, write_image


def sample(rng, kind, *shape):
    return rng.random(shape).astype(kind) if kind == np.float32 else rng.integers(0, np.iinfo(kind).max, shape, kind)


def png(colour_type, depth, *rows):
    """Write a PNG by hand, of kinds that Pillow does not write."""

    def chunk(name, data):
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    size = struct.pack(">IIBBBBB", 2, len(rows), depth, colour_type, 0, 0, 0)
    data = zlib.compress(b"".join(b"\0" + row for row in rows))
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", size) + chunk(b"IDAT", data) + chunk(b"IEND", b"")


def assert_same(found, expected):
    assert found.dtype == expected.dtype
    assert found.dtype.isnative
    assert found.flags.c_contiguous
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("kind", ["u1", "u2", "i2", "f4", "f8", ">u2", ">f4"])
@pytest.mark.parametrize("bands", [None, 2, 3, 4])
def test_npy_and_tiff_are_read_as_they_are(kind, bands, rng, tmp_path):
    image = rng.uniform(0, 99, (5, 6) if bands is None else (5, 6, bands)).astype(kind)
    expected = image.astype(image.dtype.newbyteorder("="))
    np.save(tmp_path / "a.npy", image)
    assert_same(read_image(tmp_path / "a.npy"), expected)
    path = tmp_path / "a.tif"
    for options in ({}, {"compression": "zlib"}, {"byteorder": ">"}, {"bigtiff": True}):
        tifffile.imwrite(path, image, photometric="minisblack", planarconfig=None if bands is None else 1, **options)
        assert_same(read_image(path), expected)
    if bands is not None:
        tifffile.imwrite(path, np.moveaxis(image, -1, 0), photometric="minisblack", planarconfig="separate")
        assert_same(read_image(str(path)), expected)


def test_one_band_has_no_third_axis(tmp_path):
    np.save(tmp_path / "a.npy", np.ones((4, 5, 1)))
    assert read_image(tmp_path / "a.npy").shape == (4, 5)


def test_png_and_jpeg(rng, tmp_path):
    grey, colour, deep = sample(rng, np.uint8, 5, 6), sample(rng, np.uint8, 5, 6, 3), sample(rng, np.uint16, 5, 6)
    for image in (grey, colour, deep, grey > 99):
        Image.fromarray(image).save(tmp_path / "a.png")
        assert_same(read_image(tmp_path / "a.png"), image)
    for image in (grey, colour):
        Image.fromarray(image).save(tmp_path / "a.jpg")
        assert_same(read_image(tmp_path / "a.jpg"), np.asarray(Image.open(tmp_path / "a.jpg")))
    (tmp_path / "named.tif").write_bytes((tmp_path / "a.png").read_bytes())
    assert_same(read_image(tmp_path / "named.tif"), grey > 99)


def test_palettes_give_colours(tmp_path):
    image = Image.new("P", (2, 1))
    image.putpalette([10, 20, 30, 200, 100, 0])
    image.putpixel((1, 0), 1)
    expected = np.array([[[10, 20, 30], [200, 100, 0]]], np.uint8)
    for name in ("a.png", "a.tif"):
        image.save(tmp_path / name)
        assert_same(read_image(tmp_path / name), expected)
    image.save(tmp_path / "a.png", transparency=1)
    with refused("image-alpha"):
        read_image(tmp_path / "a.png")


def test_a_grey_level_that_means_transparent(tmp_path):
    path = tmp_path / "a.png"
    grey = np.array([[7, 8]], np.uint8)
    Image.fromarray(grey).save(path, transparency=9)
    assert_same(read_image(path), grey)
    Image.fromarray(grey).save(path, transparency=8)
    with refused("image-alpha"):
        read_image(path)
    Image.fromarray(grey.astype(np.uint16)).save(path, transparency=8)
    with refused("image-alpha"):
        read_image(path)


@pytest.mark.parametrize("compression", ["tiff_lzw", "packbits", "tiff_adobe_deflate"])
@pytest.mark.parametrize("kind", ["L", "RGB", "I;16", "F", "1"])
def test_compressed_tiff(compression, kind, rng, tmp_path):
    image = Image.fromarray(
        {
            "L": sample(rng, np.uint8, 5, 6),
            "RGB": sample(rng, np.uint8, 5, 6, 3),
            "I;16": sample(rng, np.uint16, 5, 6),
            "F": sample(rng, np.float32, 5, 6),
            "1": sample(rng, np.uint8, 5, 6) > 99,
        }[kind]
    )
    image.save(tmp_path / "a.tif", compression=compression)
    assert_same(read_image(tmp_path / "a.tif"), np.asarray(image))


def test_tiff_where_white_is_zero(rng, tmp_path):
    image = sample(rng, np.uint16, 5, 6)
    tifffile.imwrite(tmp_path / "a.tif", 65535 - image, photometric="miniswhite")
    assert_same(read_image(tmp_path / "a.tif"), image)


@pytest.mark.parametrize("orientation", range(1, 9))
def test_images_are_turned_upright(orientation, rng, tmp_path):
    image = sample(rng, np.uint8, 4, 6, 3)
    exif = Image.Exif()
    exif[274] = orientation
    expected = None
    for name, options in {"a.png": {}, "a.tif": {"compression": "tiff_lzw"}, "b.tif": {}}.items():
        Image.fromarray(image).save(tmp_path / name, exif=exif, **options)
        if expected is None:
            expected = np.asarray(ImageOps.exif_transpose(Image.open(tmp_path / name)))
        assert_same(read_image(tmp_path / name), expected)
    Image.fromarray(image).save(tmp_path / "a.jpg", exif=exif)
    assert_same(read_image(tmp_path / "a.jpg"), np.asarray(ImageOps.exif_transpose(Image.open(tmp_path / "a.jpg"))))


@pytest.mark.parametrize("name", ["a.png", "a.tif"])
@pytest.mark.parametrize("bands", [2, 4])
def test_alpha_is_dropped_only_where_opaque(name, bands, rng, tmp_path):
    image = sample(rng, np.uint8, 5, 6, bands)
    image[..., -1] = 255
    Image.fromarray(image).save(tmp_path / name)
    assert_same(read_image(tmp_path / name), image[..., 0] if bands == 2 else image[..., :3])
    image[2, 3:5, -1] = 128
    Image.fromarray(image).save(tmp_path / name)
    with refused("image-alpha", name):
        read_image(tmp_path / name)


def test_alpha_of_deep_tiff(rng, tmp_path):
    image = sample(rng, np.uint16, 5, 6, 4)
    image[..., -1] = 65535
    tifffile.imwrite(tmp_path / "a.tif", image, photometric="rgb", extrasamples=["unassalpha"])
    assert_same(read_image(tmp_path / "a.tif"), image[..., :3])


def test_overviews_are_no_pages(rng, tmp_path):
    image = sample(rng, np.uint8, 8, 8)
    with tifffile.TiffWriter(tmp_path / "a.tif") as tiff:
        tiff.write(image)
        tiff.write(image[::2, ::2], subfiletype=1)
    assert_same(read_image(tmp_path / "a.tif"), image)


@pytest.mark.parametrize(
    ("name", "make", "message"),
    [
        ("a.png", lambda path: None, "file-unreadable"),
        ("a.png", lambda path: path.mkdir(), "file-kind"),
        ("a.png", lambda path: path.write_bytes(b""), "image-format"),
        ("a.gif", lambda path: Image.new("L", (3, 2)).save(path), "image-format"),
        ("a.png", lambda path: path.write_bytes(png(2, 16, b"\1" * 12)), "image-png-16"),
        ("a.png", lambda path: path.write_bytes(png(4, 16, b"\1" * 8)), "image-png-16"),
        ("a.png", lambda path: path.write_bytes(png(2, 8, *[b"\1\2\3\4\5\6"] * 99)[:50]), "image-damaged"),
        ("a.jpg", lambda path: Image.new("CMYK", (3, 2)).save(path), "image-mode"),
        ("a.tif", lambda path: Image.new("CMYK", (3, 2)).save(path), "image-mode"),
        ("a.tif", lambda path: tifffile.imwrite(path, np.zeros((7, 4, 5), np.uint8)), "image-frames"),
        ("a.tif", lambda path: path.write_bytes(b"II*\0junk"), "image-frames"),
        ("a.npy", lambda path: np.save(path, np.array([{}], object), allow_pickle=True), "image-damaged"),
        ("a.npy", lambda path: np.save(path, np.zeros(5)), "image-shape"),
        ("a.npy", lambda path: np.save(path, np.zeros((0, 5))), "image-shape"),
        ("a.npy", lambda path: np.save(path, np.zeros((2, 5), complex)), "image-type"),
        ("a.npy", lambda path: np.save(path, np.array([["a"]])), "image-type"),
    ],
)
def test_what_cannot_be_read_is_explained(name, make, message, tmp_path):
    path = tmp_path / name
    make(path)
    with refused(message, name):
        read_image(path)


@pytest.mark.parametrize(
    ("path", "code"),
    [(None, "file-unreadable"), (12.5, "file-unreadable"), ("a\0b", "file-unreadable"), ("", "file-kind")],
)
def test_paths_that_are_none(path, code):
    with refused(code):
        read_image(path)


def test_animated_png(tmp_path):
    first, second = Image.new("L", (3, 2)), Image.new("L", (3, 2), 9)
    first.save(tmp_path / "a.png", save_all=True, append_images=[second])
    with refused("image-frames"):
        read_image(tmp_path / "a.png")


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (ValueError("LZW requires the 'imagecodecs' package"), "image-compression"),
        (MemoryError(), "memory"),
    ],
)
def test_files_that_are_whole_are_not_called_damaged(error, message, rng, tmp_path, monkeypatch):
    tifffile.imwrite(tmp_path / "a.tif", sample(rng, np.uint16, 5, 6, 3), photometric="rgb")

    def refuse(page):
        raise error

    monkeypatch.setattr(tifffile.TiffPage, "asarray", refuse)
    with refused(message):
        read_image(tmp_path / "a.tif")


@pytest.mark.parametrize(("name", "package"), [("a.png", "PIL.Image"), ("a.tif", "tifffile")])
def test_without_the_extra_the_error_says_what_to_install(name, package, tmp_path, monkeypatch):
    write_image(tmp_path / name, np.zeros((2, 3), np.uint8))
    monkeypatch.setitem(sys.modules, package, None)
    for call in (lambda: read_image(tmp_path / name), lambda: write_image(tmp_path / name, np.ones((2, 3)))):
        with pytest.raises(ImportError, match=r"pip install 'bimichi\[image\]'"):
            call()


@pytest.mark.parametrize("name", ["a.png", "a.jpg", "a.tif", "lzw.tif", "a.npy"])
def test_damaged_files_give_an_image_or_our_error(name, rng, tmp_path):
    path = tmp_path / name
    image = np.repeat(sample(rng, np.uint8, 20, 3, 3), 10, axis=1)
    if name == "a.npy":
        np.save(path, image)
    else:
        Image.fromarray(image).save(path, **({"compression": "tiff_lzw"} if name == "lzw.tif" else {}))
    original = path.read_bytes()
    draw = random.Random(0)
    outcomes = Counter()
    for _ in range(150):
        data = bytearray(original)
        for _ in range(draw.randint(1, 4)):
            at = draw.randrange(min(len(data), draw.choice([60, 10**6])))
            if draw.random() < 0.3:
                del data[at : at + draw.choice([1, 9, 10**6])]
                data += b"\0" * (not data)
            else:
                data[at] = draw.randrange(256)
        path.write_bytes(data)
        try:
            read_image(path)
            outcomes["read"] += 1
        except InvalidInputError as error:
            outcomes["refused" if str(path) in str(error) else "refused without a name"] += 1
    assert outcomes["refused"] > 20
    assert outcomes["refused without a name"] == 0


def test_sources_from_files(rng, tmp_path):
    first, second = sample(rng, np.uint8, 5, 6), sample(rng, np.float32, 5, 6)
    (tmp_path / "b").mkdir()
    paths = [tmp_path / "ir.png", tmp_path / "b" / "ir.tif", str(tmp_path / "ir 2.npy")]
    write_image(paths[0], first)
    write_image(paths[1], second)
    np.save(paths[2], first)
    planes, names = read_sources(paths)
    assert names == ["ir", "ir 3", "ir 2"]
    for plane, expected in zip(planes, (first, second, first), strict=True):
        assert_same(plane, expected)
    assert read_sources(iter(paths[:2]), names=["a", "b"])[1] == ["a", "b"]
    planes, names = read_sources(paths[0])
    assert names == ["ir"]
    assert_same(planes[0], first)


def test_sources_from_the_bands_of_one_file(rng, tmp_path):
    stack = sample(rng, np.float32, 5, 6, 4)
    write_image(tmp_path / "all.tif", stack)
    for paths in (tmp_path / "all.tif", str(tmp_path / "all.tif"), [tmp_path / "all.tif"]):
        planes, names = read_sources(paths)
        assert names == ["band 1", "band 2", "band 3", "band 4"]
        for k, plane in enumerate(planes):
            assert_same(plane, stack[..., k])


def test_sources_that_do_not_fit(rng, tmp_path):
    for name, shape in (("a.png", (5, 6)), ("b.png", (6, 5)), ("c.png", (5, 6, 3))):
        write_image(tmp_path / name, sample(rng, np.uint8, *shape))
    with refused("grids-swapped", "b.png", "a.png"):
        read_sources([tmp_path / "a.png", tmp_path / "b.png"])
    write_image(tmp_path / "b.png", sample(rng, np.uint8, 4, 6))
    with refused("grids-differ", "a.png", "b.png"):
        read_sources([tmp_path / "a.png", tmp_path / "b.png"])
    with refused("bands-many", "c.png"):
        read_sources([tmp_path / "a.png", tmp_path / "c.png"])
    with refused("sources-empty:sources"):
        read_sources([])
    with refused("names-number"):
        read_sources(tmp_path / "a.png", ["a", "b"])
    with refused("names-distinct"):
        read_sources([tmp_path / "a.png", tmp_path / "a.png"], ["a", "a"])


@pytest.mark.parametrize("shape", [(5, 6), (5, 6, 3), (5, 6, 7), (5, 6, 1), (1, 1)])
def test_tiff_is_written_without_loss(shape, rng, tmp_path):
    fused = rng.uniform(-1, 1, shape).astype(np.float32)
    fused.flat[0] = np.nan
    for image in (fused, fused.astype(np.float64), sample(rng, np.uint8, *shape), sample(rng, np.uint16, *shape)):
        write_image(tmp_path / "a.tiff", image)
        kept = image.astype(np.float32) if image.dtype.kind == "f" else image
        assert_same(read_image(tmp_path / "a.tiff"), kept[..., 0] if shape[2:] == (1,) else kept)


def test_png_of_maps(rng, tmp_path):
    path = tmp_path / "a.png"
    write_image(path, [[-1.0, 0.0, 0.5, 1.0]])
    assert read_image(path).tolist() == [[0, 128, 191, 255]]
    fused = rng.uniform(-1, 1, (5, 6)).astype(np.float32)
    write_image(path, fused)
    assert np.abs(read_image(path) / 127.5 - 1 - fused).max() < 1 / 255 + 1e-6
    for image in (sample(rng, np.uint8, 5, 6), sample(rng, np.uint8, 5, 6, 3), sample(rng, np.uint16, 5, 6)):
        write_image(path, image)
        assert_same(read_image(path), image)
    write_image(path, fused > 0)
    assert_same(read_image(path), np.where(fused > 0, 255, 0).astype(np.uint8))
    write_image(str(path), sample(rng, np.uint8, 6, 5).T)
    assert read_image(path).shape == (5, 6)


@pytest.mark.parametrize(
    ("name", "image", "message"),
    [
        ("", np.zeros((2, 3)), "output-suffix"),
        ("a.jpg", np.zeros((2, 3)), "output-suffix"),
        ("a.png", np.full((2, 3), np.nan), "png-nan"),
        ("a.png", np.full((2, 3), 1.5), "png-range"),
        ("a.png", np.zeros((2, 3, 2)), "png-bands"),
        ("a.png", np.zeros((2, 3, 3), np.uint16), "png-bands"),
        ("a.png", np.zeros((2, 3), np.int64), "image-type"),
        ("a.tif", np.zeros((2, 3), complex), "image-type"),
        ("a.tif", np.zeros(3), "image-shape"),
        ("a.tif", np.zeros((0, 3)), "image-shape"),
    ],
)
def test_what_cannot_be_written_is_explained(name, image, message, tmp_path):
    with refused(message):
        write_image(tmp_path / name, image)
    assert not list(tmp_path.iterdir())


def test_a_failed_write_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "a.tif"
    write_image(path, np.zeros((2, 3), np.uint8))

    def fail(_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", fail)
    with refused("output-unwritable", "a.tif", kind=BimichiError):
        write_image(path, np.ones((2, 3), np.uint8))
    assert (read_image(path) == 0).all()
    assert list(tmp_path.iterdir()) == [path]
