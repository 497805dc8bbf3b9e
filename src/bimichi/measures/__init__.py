"""Bi-capacities, capacities and additive bi-capacities: values on elements or terms, checked once."""

from bimichi.measures.additive import AdditiveBiCapacity
from bimichi.measures.base import Measure
from bimichi.measures.bicapacity import BiCapacity
from bimichi.measures.capacity import Capacity

__all__ = ["AdditiveBiCapacity", "BiCapacity", "Capacity", "Measure"]
