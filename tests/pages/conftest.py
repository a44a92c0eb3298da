"""A browser for each module, and a project with workloads of all sorts, deployed once for the whole run."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from browser_tab import Tab, open_tab, running_chromium
from shared_platform import SharedPlatform

PROJECT = "pages"
HOSTILE = "<img src=x onerror=alert(1)>"
PROJECT_FILE = f"""\
apiVersion: pinterest.com/v1
kind: Project
metadata: {{name: {PROJECT}}}
spec:
  owner: team-pages
  contact: "#pages {HOSTILE}"
  review: open
  members: {{owner: {{people: [ann]}}, deployer: {{groups: [crew]}}}}
  quota: {{on-demand: {{cpu: 400, memory: 400Gi, pods: 300}}}}
"""
WORKLOADS = f"""\
apiVersion: pinterest.com/v1
kind: PinterestService
metadata: {{name: shop, project: {PROJECT}}}
spec: {{image: "shop:1.0", port: 8080, replicas: 3}}
---
apiVersion: pinterest.com/v1
kind: PinterestService
metadata: {{name: album, project: {PROJECT}}}
spec: {{image: "album:2.0", port: 8080}}
---
apiVersion: pinterest.com/v1
kind: PinterestJobSet
metadata: {{name: resize, project: {PROJECT}}}
spec: {{image: "resize:1.0", tasks: 40, parallelism: 8}}
"""


@pytest.fixture(scope="session")
def pages_platform(platform: SharedPlatform, tmp_path_factory: pytest.TempPathFactory) -> SharedPlatform:
    folder = tmp_path_factory.mktemp("pages")
    for text in (PROJECT_FILE, WORKLOADS):
        deploy_documents(platform, folder, text)
    return platform


def deploy_documents(platform: SharedPlatform, folder: Path, text: str) -> None:
    file = folder / "all.yaml"
    file.write_text(text)
    platform.pin("deploy", str(file))


@pytest.fixture(scope="module")
def chromium(pages_platform: SharedPlatform, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with running_chromium(pages_platform, tmp_path_factory.mktemp("chromium")) as browser:
        yield browser


@pytest.fixture
def tab(chromium: Browser, pages_platform: SharedPlatform) -> Iterator[Tab]:
    with open_tab(chromium, pages_platform) as opened:
        yield opened
