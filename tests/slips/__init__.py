"""Slips that users make, by topic; `tests/cli/test_slips.py` makes each of them."""

from slips.images import IMAGES
from slips.labels import ANNOTATIONS, MASKS
from slips.options import OPTIONS
from slips.paths import OUTPUTS, PATHS
from slips.sources import SOURCES

SLIPS = PATHS + OUTPUTS + IMAGES + SOURCES + ANNOTATIONS + MASKS + OPTIONS
