from .expressions import BandExpression as BandExpression, parse_expression as parse_expression
from .operators import (
    adaptive_threshold as adaptive_threshold,
    difference as difference,
    edge_strength as edge_strength,
    equalize as equalize,
    gamma_correction as gamma_correction,
    grey as grey,
    inverted as inverted,
    local_contrast as local_contrast,
    local_difference as local_difference,
    quantile as quantile,
    rarity as rarity,
    to_bipolar as to_bipolar,
    vertical_edges as vertical_edges,
)
from .recipes import (
    RECIPES as RECIPES,
    Recipe as Recipe,
    load_recipe as load_recipe,
    recipe as recipe,
    register_recipe as register_recipe,
)
from .registration import Shift as Shift, estimate_shift as estimate_shift
from .source_bank import Bank as Bank, bank as bank
