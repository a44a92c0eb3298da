"""Bundles as a pod reads them from the config store. It uses only the standard library."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlencode

from pincompute.agents.store_connection import IdentityCredentials, StoreConnection, StoreUnavailable
from pincompute.objects.config_bundle import BundleFile, bundle_errors

CONFIG_STORE_IDENTITY = "config-store"
READ_TIMEOUT_S = 10.0
LIVE_TIMEOUT_S = 40.0
"""Longer than the store waits for a change."""


class BundleRejected(Exception):  # noqa: N818  (named by what happened)
    """The store does not have the bundle, or not for this pod."""


class Version(NamedTuple):
    """One version of a bundle."""

    number: int
    digest: str
    files: list[BundleFile]


class ConfigSource:
    def __init__(self, reads: StoreConnection, live: StoreConnection) -> None:
        self._reads = reads
        self._live = live

    @classmethod
    def of_pod(cls, store: str) -> ConfigSource:
        """The store at an address, with the identity of this pod."""
        identity = Path(os.environ.get("IDENTITY_FOLDER", "/run/identity"))
        credentials = IdentityCredentials(identity, CONFIG_STORE_IDENTITY)
        return cls(*(StoreConnection(store, credentials, each) for each in (READ_TIMEOUT_S, LIVE_TIMEOUT_S)))

    def read_version(self, bundle: str, number: int = 0) -> Version:
        """A version of a bundle; the current one by default."""
        return checked_version(json.loads(_get(self._reads, f"/v1/bundles/{bundle}/{number}")))

    def read_content(self, bundle: str, number: int, digest: str) -> bytes:
        return _get(self._reads, f"/v1/bundles/{bundle}/{number}/{digest}")

    def wait_changed(self, bundles: Sequence[str], known: Sequence[str]) -> list[str]:
        """Version and digest of each bundle, once one differs from what is known, or after half a minute."""
        states: list[str] = json.loads(_get(self._live, "/v1/live", {"bundle": list(bundles), "known": list(known)}))
        if len(states) != len(bundles):
            raise StoreUnavailable("the store answered for another number of bundles")
        return states


def _get(connection: StoreConnection, path: str, query: dict[str, object] | None = None) -> bytes:
    status, _, body = connection.send("GET", f"{path}?{urlencode(query or {}, doseq=True)}")
    if status == 200:
        return body
    message = _message(body)
    # 401 and 403 are of a certificate that is not valid any more, or not yet.
    if status in {404, 409, 422}:
        raise BundleRejected(message)
    raise StoreUnavailable(f"the store returned {status}: {message}")


def checked_version(found: dict[str, Any]) -> Version:
    """A version as the store sent it. A store must not make a pod write outside of its folder, or fill its disk."""
    files = [BundleFile(each["path"], each["digest"], each["size"]) for each in found.get("files", ())]
    if error := next(bundle_errors(files), ""):
        raise BundleRejected(f"the store sent a bundle that is not allowed: {error}")
    return Version(found["version"], found["digest"], files)


def _message(body: bytes) -> str:
    try:
        return "; ".join(each["detail"] for each in json.loads(body))
    except (ValueError, KeyError, TypeError):
        return body.decode("utf-8", "replace").strip()[:200]
