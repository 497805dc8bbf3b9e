"""Annotation formats, one per file; `bimichi.imaging.annotations` registers them."""

from bimichi.imaging.formats.base import AnnotationFormat, Annotations, ImageAnnotations

__all__ = ["AnnotationFormat", "Annotations", "ImageAnnotations"]
