"""A fused map as a small picture, for the index of many reports."""

from bimichi._pictures import thumbnail as thumbnail
