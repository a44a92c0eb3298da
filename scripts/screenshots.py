"""Takes the pictures of the web pages for docs/screenshots, from the platform that `make demo` has left running.

`make screenshots` runs it; `--platform NAME` names another platform than `main`.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
sys.path += [str(ROOT / "tests" / "support")]

from playwright.sync_api import Page, expect  # noqa: E402

from browser_tab import open_tab, running_chromium  # noqa: E402
from pincompute.base.settings import setting_value  # noqa: E402
from shared_platform import SharedPlatform  # noqa: E402

FOLDER = ROOT / "docs" / "screenshots"
MAX_BYTES = 150_000
SIZE = (1200, 720)


class Shot(NamedTuple):
    name: str
    address: str
    dark: bool
    ready: str
    """Selector of the element that is shown last."""


SHOTS = (
    Shot("workloads-light", "/ui/workloads", dark=False, ready="a.row"),
    Shot("workload-light", "/ui/projects/me/workloads/album", dark=False, ready=".tree li"),
    Shot("batch-dark", "/ui/projects/me/workloads/pictures", dark=True, ready="canvas"),
)


def take_shots(platform: SharedPlatform) -> None:
    FOLDER.mkdir(exist_ok=True)
    with TemporaryDirectory() as folder, running_chromium(platform, Path(folder)) as browser:
        for shot in SHOTS:
            with open_tab(browser, platform, size=SIZE, dark=shot.dark) as tab:
                tab.open(shot.address)
                expect(tab.page.locator(shot.ready).first).to_be_visible()
                expect(tab.page.locator(".loading")).to_have_count(0)
                _save(tab.page, FOLDER / f"{shot.name}.png")


def _save(page: Page, file: Path) -> None:
    page.screenshot(path=file)
    size = file.stat().st_size
    assert size <= MAX_BYTES, f"{file.name} has {size:,} bytes"
    print(f"{file.relative_to(ROOT)}  {size:,} bytes")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--platform", default="main")
    name = parser.parse_args().platform
    take_shots(SharedPlatform(name, Path(setting_value("state"))))


if __name__ == "__main__":
    main()
