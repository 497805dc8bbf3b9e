"""What is searched: the elements of a lattice, or the terms of an additive bi-capacity."""

from bimichi.learning.spaces.base import Space
from bimichi.learning.spaces.elements import ElementSpace
from bimichi.learning.spaces.terms import TermSpace

__all__ = ["ElementSpace", "Space", "TermSpace"]
