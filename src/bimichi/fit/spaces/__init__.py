"""Spaces that are searched: the elements of a lattice, or the terms of an additive bi-capacity."""

from bimichi.fit.spaces.base import Space
from bimichi.fit.spaces.elements import ElementSpace
from bimichi.fit.spaces.terms import TermSpace

__all__ = ["ElementSpace", "Space", "TermSpace"]
