"""The integrals: sources in any layout, their kernels, and the integral as rows that are linear in the measure."""

from bimichi.integral.labelled import choquet
from bimichi.integral.linear import linear_form, usage_counts

__all__ = ["choquet", "linear_form", "usage_counts"]
