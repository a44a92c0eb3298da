"""The files of the pages as a browser gets them: prepared once, compressed, under an address with their digest.

All scripts are in one folder whose name is the digest of all of them, so that their imports of one another are relative
and need no rewriting, and that every file may be cached for ever. Nothing is built: the files are served as written.
"""

from __future__ import annotations

import gzip
import hashlib
from collections.abc import Mapping
from functools import cache
from importlib import resources
from importlib.resources.abc import Traversable
from string import Template
from typing import NamedTuple

import msgspec

from pincompute.base.reasons import REASONS
from pincompute.desk.pages.vendored import VENDORED

ASSETS_PATH = "/ui/assets"
SHELL = "shell.html"
MEDIA_TYPES = {
    ".css": "text/css",
    ".html": "text/html",
    ".js": "text/javascript",
    ".mjs": "text/javascript",
    ".svg": "image/svg+xml",
}
_FOLDER = resources.files("pincompute.desk.pages")


class Asset(NamedTuple):
    body: bytes
    gzipped: bytes
    media_type: str


class Bundle(NamedTuple):
    digest: str
    """Digest of all assets, which is part of their addresses."""
    assets: Mapping[str, Asset]
    shell: Asset
    """The document of every page, which loads the assets."""
    shell_tag: str


@cache
def load_bundle() -> Bundle:
    """Read and compress everything, in a few milliseconds."""
    assets = {name: _asset(name, body) for name, body in sorted(_asset_bodies().items())}
    digest = hashlib.sha256()
    for name, each in assets.items():
        digest.update(f"{name}\0{len(each.body)}\0".encode() + each.body)
    folder = digest.hexdigest()[:16]
    preloads = "\n".join(
        f'<link rel="modulepreload" href="{ASSETS_PATH}/{folder}/{name}">'
        for name, each in assets.items()
        if each.media_type == MEDIA_TYPES[".js"]
    )
    template = Template((_FOLDER / "static" / SHELL).read_text(encoding="utf-8"))
    shell = template.substitute(assets=f"{ASSETS_PATH}/{folder}", preloads=preloads).encode()
    return Bundle(folder, assets, _asset(SHELL, shell), f'"{hashlib.sha256(shell).hexdigest()[:32]}"')


def _asset_bodies() -> dict[str, bytes]:
    own = {each.name: each.read_bytes() for each in _files("static") if each.name != SHELL}
    # The publisher's file names the package; a browser needs an address.
    vendored = {
        each.name: each.read_bytes().replace(b'from"preact"', b'from"./preact.mjs"')
        for each in _files("vendor")
        if each.name in VENDORED
    }
    return {**own, **vendored, "reasons.js": _reasons_script()}


def _files(folder: str) -> list[Traversable]:
    return [each for each in (_FOLDER / folder).iterdir() if each.is_file()]


def _reasons_script() -> bytes:
    """The table of all reasons as a module, so that pages colour and explain a reason as the terminal does."""
    table = {
        code: {"severity": each.severity, "actor": each.actor, "meaning": each.meaning, "remedy": each.remedy}
        for code, each in sorted(REASONS.items())
    }
    return b"export const REASONS = " + msgspec.json.encode(table) + b";\n"


def _asset(name: str, body: bytes) -> Asset:
    suffix = f".{name.rpartition('.')[2]}"
    # Without a time, so that the same content is the same bytes.
    return Asset(body, gzip.compress(body, mtime=0), MEDIA_TYPES[suffix])
