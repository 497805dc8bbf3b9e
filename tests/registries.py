"""Registries as tests use them."""

from contextlib import contextmanager


@contextmanager
def restored(*registries):
    """Undo within what the block registers."""
    kept = [dict(registry) for registry in registries]
    try:
        yield
    finally:
        for registry, before in zip(registries, kept, strict=True):
            registry.clear()
            registry.update(before)


def check_description(text):
    assert text
    assert "\n" not in text
    assert not text.endswith(".")
