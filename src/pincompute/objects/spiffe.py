"""SPIFFE IDs: identities as URIs in certificates."""

from __future__ import annotations

import re
from typing import NamedTuple

MAX_ID_BYTES = 2048
"""Maximum length, including the scheme."""

_SCHEME = "spiffe://"
_TRUST_DOMAIN = re.compile(r"[a-z0-9._-]{1,255}", re.ASCII)
_SEGMENT = re.compile(r"[a-zA-Z0-9._-]+", re.ASCII)


class SpiffeId(NamedTuple):
    """`spiffe://main.pincompute.local/me/web`: a trust domain and a path."""

    trust_domain: str
    path: tuple[str, ...] = ()
    """Project and name of a workload; empty for the authority of the trust domain."""

    def __str__(self) -> str:
        return _SCHEME + "/".join((self.trust_domain, *self.path))


def parse_spiffe_id(text: str) -> SpiffeId:
    """Parse a SPIFFE ID strictly by the standard. ValueError explains the error."""
    if not text.startswith(_SCHEME):
        raise ValueError("the scheme must be spiffe")
    if len(text.encode()) > MAX_ID_BYTES:
        raise ValueError(f"longer than {MAX_ID_BYTES} bytes")
    trust_domain, *path = text.removeprefix(_SCHEME).split("/")
    if not _TRUST_DOMAIN.fullmatch(trust_domain):
        # This also rejects ports, users, queries and fragments: their separators are not allowed.
        raise ValueError(f"invalid trust domain '{trust_domain}': use a-z, 0-9, dots, dashes and underscores")
    for segment in path:
        if segment in {".", ".."} or not _SEGMENT.fullmatch(segment):
            raise ValueError(f"invalid path segment '{segment}': use letters, digits, dots, dashes and underscores")
    return SpiffeId(trust_domain, tuple(path))
