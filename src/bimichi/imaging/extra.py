"""Packages of the extra `image`, imported when a function first needs one."""

from importlib import import_module
from typing import Any

__all__ = ["image_package"]


def image_package(name: str) -> Any:
    """Import a module that the extra `image` brings; if it is missing, say how to install it."""
    try:
        return import_module(name)
    except ImportError as error:
        package = name.partition(".")[0]
        raise ImportError(f"This needs {package}; install it with: pip install 'bimichi[image]'") from error
