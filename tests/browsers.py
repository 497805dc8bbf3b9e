"""What tests in a real browser share: finding Chromium, and starting it."""

import os
import shutil
from contextlib import contextmanager

import pytest
from playwright.sync_api import expect, sync_playwright

expect.set_options(timeout=60_000)  # what a page should show may take long where many tests run at once

NAMES = ("chromium", "chromium-browser", "google-chrome")
FLAGS = (
    "--headless=new --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync"
)


@contextmanager
def launched(untested, *flags):
    """Chromium, with more flags if any; where there is none, the test is skipped, and says what was `untested`."""
    path = os.environ.get("BIMICHI_CHROMIUM") or next(filter(None, map(shutil.which, NAMES)), None)
    if path is None:
        pytest.skip(f"no Chromium was found: {untested}. Install chromium, or name it in BIMICHI_CHROMIUM.")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=[*FLAGS.split(), *flags])
        yield browser
        browser.close()
