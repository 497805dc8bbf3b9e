"""Proof that no measure has a smaller J: relaxations of the problem, and branch and bound over them."""

from bimichi.fit.certificate.tree import Certified, Limits, certify

__all__ = ["Certified", "Limits", "certify"]
