"""Annotation formats, one per file; `bimichi.imaging.annotations` registers them."""

__all__: list[str] = []
