"""Projects that were opened before, for the start page; kept among the user's own files."""

import json
import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

from bimichi._files import atomic_write
from bimichi.errors import BimichiError

MOST = 12


def _file() -> Path:
    if sys.platform == "win32":
        base = Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    elif sys.platform == "darwin":
        base = Path.home() / "Library" / "Application Support"
    else:
        base = Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state")
    return base / "bimichi" / "studio-recent.json"


def recent_projects() -> list[Path]:
    """Return project files that still exist, the latest first."""
    with suppress(OSError, ValueError, RuntimeError):  # the last if there is no home folder
        listed = json.loads(_file().read_text(encoding="utf-8"))
        if isinstance(listed, list):
            paths = [Path(text) for text in listed if isinstance(text, str) and "\0" not in text]
            return [path for path in paths[:MOST] if path.is_absolute() and path.is_file()]
    return []


def remember(project: Path) -> None:
    """Put a project first; where that cannot be written, nothing is remembered."""
    with suppress(OSError, RuntimeError, BimichiError):
        path = project.resolve()
        listed = [path, *(one for one in recent_projects() if one != path)][:MOST]
        _file().parent.mkdir(parents=True, exist_ok=True)
        text = json.dumps([str(one) for one in listed])
        atomic_write(_file(), lambda file: file.write(text.encode()))


def recent_json() -> list[dict[str, Any]]:
    """Return them as the page shows them."""
    return [
        {"path": str(path), "name": path.name, "folder": path.parent.name, "changed": path.stat().st_mtime}
        for path in recent_projects()
    ]
