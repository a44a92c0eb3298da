"""The name of an image: how people write it, where a registry keeps it, and which name is nearest."""

from __future__ import annotations

import re
from collections.abc import Iterable
from difflib import SequenceMatcher
from typing import NamedTuple

LATEST = "latest"

# A name without a registry means this one to every container runtime.
_HUB = ("docker.io", "index.docker.io")
# Podman and buildah put this before what was built here and is in no registry.
_NOWHERE = "localhost"
_PLAIN = ("", *_HUB, _NOWHERE)

_HOST = re.compile(r"[A-Za-z0-9-]+(\.[A-Za-z0-9-]+)*(:[0-9]+)?")
_COMPONENT = re.compile(r"[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*")
_TAG = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}")
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")

# Beneath this two names are not alike, as in "did you mean".
_ALIKE = 0.6


class ImageName(NamedTuple):
    """`host/path:tag@digest`."""

    path: str
    tag: str = LATEST
    host: str = ""
    digest: str = ""

    @property
    def repository(self) -> str:
        """Where the platform's registry keeps it: the host is left out, and `hello` is `library/hello`."""
        plain = self.host in _PLAIN and "/" not in self.path
        return f"library/{self.path}" if plain else self.path

    @property
    def reference(self) -> str:
        """What a registry is asked for: a digest is more exact than a tag."""
        return self.digest or self.tag

    @property
    def short(self) -> str:
        """As a person would type it."""
        host = "" if self.host in _PLAIN else f"{self.host}/"
        return f"{host}{self.path.removeprefix('library/')}:{self.tag}"


def parse(text: str) -> ImageName:
    """ValueError with words, where no registry could hold such a name."""
    rest, at, digest = text.partition("@")
    first, slash, after = rest.partition("/")
    host, rest = (first, after) if slash and _is_host(first) else ("", rest)
    path, colon, tag = rest.partition(":")
    if host and not _HOST.fullmatch(host):
        raise ValueError(f"'{host}' cannot be the address of a registry")
    if not all(_COMPONENT.fullmatch(component) for component in path.split("/")):
        raise ValueError("a name has lower-case letters, digits and single . _ - within, such as team/hello")
    if colon and not _TAG.fullmatch(tag):
        raise ValueError("a tag has letters, digits and . _ -, at most 128, such as 1.0 or dev")
    if at and not _DIGEST.fullmatch(digest):
        raise ValueError("a digest is sha256: and 64 hexadecimal digits")
    return ImageName(path, tag or LATEST, host, digest)


def stored(repository: str, tag: str) -> str:
    """The name of what a registry lists. Only a name with a host is kept without a folder; which host is not kept."""
    return ImageName(repository, tag, "" if "/" in repository else "*").short


def nearest(image: str, known: Iterable[str]) -> str:
    """The name that was probably meant: another tag of that image before a similar name; empty where none is near."""
    wanted = _lenient(image)
    ranked = sorted((_likeness(wanted, other), other) for other in known)
    likeness, best = ranked[-1] if ranked else (0.0, "")
    return best if likeness >= _ALIKE else ""


def _likeness(wanted: str, other: str) -> float:
    same_image = other.rpartition(":")[0] == wanted.rpartition(":")[0]
    return same_image + SequenceMatcher(None, wanted, other).ratio()


def _lenient(image: str) -> str:
    """A name that cannot be one can still be near one."""
    try:
        return parse(image).short
    except ValueError:
        return image.lower()


def _is_host(component: str) -> bool:
    return "." in component or ":" in component or component == _NOWHERE
