"""Bi-capacities, capacities and additive bi-capacities: values on a lattice of elements, checked once."""

__all__: list[str] = []
