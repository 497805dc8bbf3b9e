import numpy as np
import pytest
import rasterio
from annotation_files import CRS, PLACES, SHAPE

from bimichi.io import write_image


@pytest.fixture(scope="module")
def scenes(tmp_path_factory):
    """Two scenes of two sources: GeoTIFF, and PNG."""
    root = tmp_path_factory.mktemp("scenes")
    (root / "ir").mkdir()
    (root / "vi").mkdir()
    rng = np.random.default_rng(0)
    for image, place in PLACES.items():
        band = rng.integers(0, 255, SHAPE).astype(np.uint8)
        options = {"height": SHAPE[0], "width": SHAPE[1], "count": 1, "dtype": "uint8", "crs": CRS}
        path = root / "ir" / image.replace(".png", ".tif")
        with rasterio.open(path, "w", driver="GTiff", transform=rasterio.Affine(*place.transform), **options) as opened:
            opened.write(band, 1)
        write_image(root / "vi" / image, band)
    return root
