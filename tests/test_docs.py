"""The tutorial and the how-to pages: every command and every block runs, in order, in one folder, with state kept."""

import contextlib
import io
import re
import shlex
from pathlib import Path

import pytest
from program import run

DOCS = Path(__file__).parents[1] / "docs"
PAGES = [DOCS / "tutorial.md", *sorted((DOCS / "how-to").glob("*.md"))]


@pytest.mark.slow
@pytest.mark.filterwarnings("default")  # drawn scenes are small, of which commands warn
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_page_runs_from_top_to_bottom(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "agg")
    state = {"__name__": "page"}
    blocks = re.findall(r"```(sh|python)\n(.*?)```", page.read_text(), re.DOTALL)
    assert blocks
    for kind, text in blocks:
        if kind == "sh":
            for line in text.replace("\\\n", " ").splitlines():
                program, *arguments = shlex.split(line, comments=True)
                assert program == "bimichi"
                run(*arguments)
        else:
            printed = io.StringIO()
            with contextlib.redirect_stdout(printed):
                exec(compile(text, str(page), "exec"), state)
            for expected in re.findall(r"print\(.*\)  # (.*)", text):
                assert expected in printed.getvalue()
