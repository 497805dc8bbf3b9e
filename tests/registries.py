"""Registries as tests use them."""

from contextlib import contextmanager

from bimichi.sources import recipes


@contextmanager
def restored(*registries):
    """Forget afterwards what the block registers."""
    before = [set(registry.names()) for registry in registries]
    try:
        yield
    finally:
        for registry, names in zip(registries, before, strict=True):
            for name in set(registry.names()) - names:
                registry.forget(name)


@contextmanager
def unimported():
    """Forget afterwards which functions the block imports as recipes."""
    before = dict(recipes._loaded)
    try:
        yield
    finally:
        recipes._loaded.clear()
        recipes._loaded.update(before)


def check_description(text):
    assert text
    assert "\n" not in text
    assert not text.endswith(".")
