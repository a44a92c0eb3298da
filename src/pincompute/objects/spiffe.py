"""SPIFFE IDs: who somebody is, as one text that every certificate carries."""

from __future__ import annotations

import re
from typing import NamedTuple

LONGEST = 2048
"""Bytes, scheme included."""

_SCHEME = "spiffe://"
_TRUST_DOMAIN = re.compile(r"[a-z0-9._-]{1,255}", re.ASCII)
_SEGMENT = re.compile(r"[a-zA-Z0-9._-]+", re.ASCII)


class SpiffeId(NamedTuple):
    """`spiffe://main.pincompute.local/me/web`: within a trust domain, whatever the path says."""

    trust_domain: str
    path: tuple[str, ...] = ()
    """Of a workload its project and its name; empty for the trust domain's own authority."""

    def __str__(self) -> str:
        return _SCHEME + "/".join((self.trust_domain, *self.path))


def parse(text: str) -> SpiffeId:
    """By the letter of the standard; ValueError says what is wrong."""
    if not text.startswith(_SCHEME):
        raise ValueError("its scheme is not spiffe")
    if len(text.encode()) > LONGEST:
        raise ValueError(f"it is longer than {LONGEST} bytes")
    trust_domain, *path = text.removeprefix(_SCHEME).split("/")
    if not _TRUST_DOMAIN.fullmatch(trust_domain):
        # A port, a user, a query and a fragment all need a character that no trust domain has.
        raise ValueError(f"'{trust_domain}' is no trust domain: those have a-z, 0-9, dots, dashes and underscores")
    for segment in path:
        if segment in {".", ".."} or not _SEGMENT.fullmatch(segment):
            raise ValueError(f"'{segment}' is no part of a path: those have letters, digits, dots, dashes, underscores")
    return SpiffeId(trust_domain, tuple(path))
