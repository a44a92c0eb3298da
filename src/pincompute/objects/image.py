"""Image names: parsing, registry paths, and the most similar known name."""

from __future__ import annotations

import re
from collections.abc import Iterable
from difflib import SequenceMatcher
from typing import NamedTuple

LATEST = "latest"

# Container runtimes use this registry if a name has none.
_HUB = ("docker.io", "index.docker.io")
# Podman and buildah use this host for images that were built locally.
_LOCAL = "localhost"
_IMPLICIT_HOSTS = ("", *_HUB, _LOCAL)

_HOST = re.compile(r"[A-Za-z0-9-]+(\.[A-Za-z0-9-]+)*(:[0-9]+)?")
_COMPONENT = re.compile(r"[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*")
_TAG = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}")
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")

# Minimum similarity of a suggestion.
_MIN_SIMILARITY = 0.6


class ImageName(NamedTuple):
    """`host/path:tag@digest`."""

    path: str
    tag: str = LATEST
    host: str = ""
    digest: str = ""

    @property
    def repository(self) -> str:
        """Path in the platform's registry: without host, and with `library/` in front of a single component."""
        plain = self.host in _IMPLICIT_HOSTS and "/" not in self.path
        return f"library/{self.path}" if plain else self.path

    @property
    def reference(self) -> str:
        """Tag or digest to request from a registry; the digest is preferred because it is exact."""
        return self.digest or self.tag

    @property
    def short(self) -> str:
        """Short form for display."""
        host = "" if self.host in _IMPLICIT_HOSTS else f"{self.host}/"
        return f"{host}{self.path.removeprefix('library/')}:{self.tag}"


def parse_image(text: str) -> ImageName:
    """Parse an image name. ValueError explains the error."""
    rest, at, digest = text.partition("@")
    first, slash, after = rest.partition("/")
    host, rest = (first, after) if slash and _is_host(first) else ("", rest)
    path, colon, tag = rest.partition(":")
    if host and not _HOST.fullmatch(host):
        raise ValueError(f"invalid registry host '{host}'")
    if not all(_COMPONENT.fullmatch(component) for component in path.split("/")):
        raise ValueError("a name has lower-case letters and digits, with single . _ - between them, such as team/hello")
    if colon and not _TAG.fullmatch(tag):
        raise ValueError("a tag has at most 128 letters, digits and . _ -, such as 1.0 or dev")
    if at and not _DIGEST.fullmatch(digest):
        raise ValueError("a digest is sha256: followed by 64 hexadecimal digits")
    return ImageName(path, tag or LATEST, host, digest)


def listed_image_name(repository: str, tag: str) -> str:
    """Display name of an image listed by the registry.

    Only a name that had a host is stored without a folder, and the host itself is not stored.
    """
    return ImageName(repository, tag, "" if "/" in repository else "*").short


def nearest_image(image: str, known: Iterable[str]) -> str:
    """Most similar known image, preferring other tags of the same image; empty if none is similar."""
    wanted = _normalized(image)
    ranked = sorted((_similarity(wanted, other), other) for other in known)
    likeness, best = ranked[-1] if ranked else (0.0, "")
    return best if likeness >= _MIN_SIMILARITY else ""


def _similarity(wanted: str, other: str) -> float:
    same_image = other.rpartition(":")[0] == wanted.rpartition(":")[0]
    return same_image + SequenceMatcher(None, wanted, other).ratio()


def _normalized(image: str) -> str:
    """Normalize a name for comparison, even if it is invalid."""
    try:
        return parse_image(image).short
    except ValueError:
        return image.lower()


def _is_host(component: str) -> bool:
    return "." in component or ":" in component or component == _LOCAL
