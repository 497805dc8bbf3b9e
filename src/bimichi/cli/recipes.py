"""Names of the recipes that make a source of an image; here, where nothing slow is imported."""

__all__ = ["AS_IS", "POINTWISE", "RECIPES"]

AS_IS = "as_is"
"""The recipe that changes nothing: values are in [-1, 1] already, or `--scale` brings them there."""

RECIPES = (AS_IS, "to_bipolar", "adaptive_threshold", "equalize", "gamma_correction", "local_contrast", "edge_strength")
"""`as_is`, and those of ``bimichi.imaging.SOURCE_RECIPES``."""

POINTWISE = (AS_IS, "to_bipolar", "gamma_correction")
"""Recipes that look at one pixel at a time, so that an image can be taken in strips."""
