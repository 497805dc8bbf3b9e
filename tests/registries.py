"""Registries as tests use them."""

from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).parent.parent


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


def check_table(page, title, rows):
    """Check that a page of the docs has these rows, and no other, below this title."""
    section = (ROOT / "docs" / page).read_text().split(f"\n## {title}\n")[1].split("\n## ")[0]
    found = [line for line in section.splitlines() if line.startswith("| `")]
    assert found == rows
