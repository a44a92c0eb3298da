"""What a browser gets of the pages: complete, small, from this origin only, and without a way to run a text."""

from __future__ import annotations

import gzip
import hashlib
import re
from importlib import resources

import pytest
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer

from pincompute.base.reasons import REASONS
from pincompute.desk.http.errors import problem_middleware
from pincompute.desk.http.page_routes import page_routes
from pincompute.desk.pages.assets import ASSETS_PATH, MEDIA_TYPES, load_bundle
from pincompute.desk.pages.vendored import VENDORED

FOLDER = resources.files("pincompute.desk.pages")
MAX_PAGE_BYTES = 250_000
OWN = sorted(each.name for each in (FOLDER / "static").iterdir() if each.name.endswith(".js"))


@pytest.mark.parametrize("name", VENDORED)
def test_vendored_file_is_that_of_its_publisher(name: str) -> None:
    vendored = VENDORED[name]
    assert hashlib.sha256((FOLDER / "vendor" / name).read_bytes()).hexdigest() == vendored.sha256
    assert (FOLDER / "vendor" / vendored.licence).read_text()


def test_every_file_of_the_folders_is_served_or_known() -> None:
    names = {each.name for folder in ("static", "vendor") for each in (FOLDER / folder).iterdir() if each.is_file()}
    licences = {each.licence for each in VENDORED.values()}
    assert names - licences - {"shell.html"} == load_bundle().assets.keys() - {"reasons.js"}


def test_a_page_with_everything_it_loads_is_small() -> None:
    bundle = load_bundle()
    total = sum(len(each.gzipped) for each in (bundle.shell, *bundle.assets.values()))
    assert total < MAX_PAGE_BYTES
    assert all(gzip.decompress(each.gzipped) == each.body for each in bundle.assets.values())


def test_scripts_import_only_scripts_that_exist_and_all_are_used() -> None:
    assets = load_bundle().assets
    scripts = {name: each.body.decode() for name, each in assets.items() if each.media_type == MEDIA_TYPES[".js"]}
    imported = {name: re.findall(r'from ?"([^"]*)"', text) for name, text in scripts.items()}
    assert all(target.startswith("./") and target[2:] in scripts for targets in imported.values() for target in targets)
    used = {target[2:] for targets in imported.values() for target in targets}
    assert scripts.keys() - used == {"main.js"}


@pytest.mark.parametrize("name", OWN)
def test_own_scripts_never_parse_markup_or_run_text(name: str) -> None:
    text = (FOLDER / "static" / name).read_text()
    ways = (
        "innerHTML",
        "outerHTML",
        "insertAdjacent",
        "document.write",
        "eval(",
        "new Function",
        "srcdoc",
        "javascript:",
    )
    assert [way for way in ways if way in text] == []
    assert "import(" not in text, "an old tab would ask for a script of a version that is gone"


def test_shell_has_no_inline_script_or_style() -> None:
    shell = load_bundle().shell.body.decode()
    assert "<style" not in shell
    assert not re.search(r"\son\w+=|\sstyle=", shell)
    assert re.findall(r"<script[^>]*>(.*?)</script>", shell, re.DOTALL) == [""]
    assert set(re.findall(r'(?:src|href)="([^"]*)"', shell)) == {
        f"{ASSETS_PATH}/{load_bundle().digest}/{name}" for name, each in load_bundle().assets.items()
    }


def test_reasons_are_those_of_the_platform() -> None:
    text = load_bundle().assets["reasons.js"].body.decode()
    assert all(f'"{code}":' in text for code in REASONS)


async def test_every_page_has_the_same_document_with_strict_headers() -> None:
    async with served_pages() as client:
        for path in ("/", "/ui", "/ui/projects/ads/workloads/hello", "/ui/%3Cscript%3E"):
            async with client.get(path) as response:
                assert (response.status, response.content_type) == (200, "text/html")
                policy = response.headers["Content-Security-Policy"]
                assert "script-src 'self'" in policy
                assert "unsafe" not in policy
                assert response.headers["Cache-Control"] == "no-cache"
                assert await response.read() == load_bundle().shell.body
        tag = {"If-None-Match": load_bundle().shell_tag}
        async with client.get("/ui", headers=tag) as response:
            assert (response.status, await response.read()) == (304, b"")


async def test_assets_are_cached_for_ever_under_their_digest() -> None:
    bundle = load_bundle()
    async with served_pages() as client:
        for name, asset in bundle.assets.items():
            async with client.get(f"{ASSETS_PATH}/{bundle.digest}/{name}") as response:
                assert response.status == 200
                assert "immutable" in response.headers["Cache-Control"]
                assert response.headers["Content-Encoding"] == "gzip"
                assert await response.read() == asset.body
        plain = {"Accept-Encoding": "identity"}
        async with client.get(f"{ASSETS_PATH}/{bundle.digest}/main.js", headers=plain) as response:
            assert "Content-Encoding" not in response.headers
            assert await response.read() == bundle.assets["main.js"].body
        for path in (f"{'0' * 16}/main.js", f"{bundle.digest}/nothing.js", f"{bundle.digest}/..%2fvendored.py"):
            async with client.get(f"{ASSETS_PATH}/{path}") as response:
                assert response.status == 404
                assert b"PathUnknown" in await response.read()


def served_pages() -> TestClient[web.Request, web.Application]:
    app = web.Application(middlewares=[problem_middleware])
    app.add_routes(page_routes())
    return TestClient(TestServer(app))
