"""Libraries of others that the pages are built on, as their publishers packed them.

To take another version: `npm pack NAME@VERSION`, copy the file, and write its digest here. A test compares.
"""

from __future__ import annotations

from typing import NamedTuple


class VendoredFile(NamedTuple):
    package: str
    version: str
    path: str
    """Path in the package."""
    sha256: str
    licence: str
    """File with the text of the licence, beside it."""


VENDORED = {
    "preact.mjs": VendoredFile(
        "preact",
        "11.2.0",
        "dist/preact.mjs",
        "bdcbd9abdf2c77c5c45326eab42191e949222d479d0d5f69467387a77040cb55",
        "LICENSE.preact",
    ),
    "hooks.mjs": VendoredFile(
        "preact",
        "11.2.0",
        "hooks/dist/hooks.mjs",
        "e862ab2973aa6455eaa0f77c5d832d2157d6be59a17c8ba546550a575b58c6b4",
        "LICENSE.preact",
    ),
    "htm.mjs": VendoredFile(
        "htm",
        "3.1.1",
        "dist/htm.module.js",
        "ab33dd3f38059b9be4d5f5350128eefb2356639c4e0bbe9d9e8b3ba75847e9e4",
        "LICENSE.htm",
    ),
}
"""By the name of the file in the folder `vendor`."""
