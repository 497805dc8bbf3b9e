"""Scores, and methods compared on the same scenes."""

__all__: list[str] = []
