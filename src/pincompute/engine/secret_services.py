"""The secret store, and its keys."""

from __future__ import annotations

from pathlib import Path

from pincompute.api.names import SECRET_STORE
from pincompute.base.key_file import create_key_file
from pincompute.base.secure_files import make_private_folder
from pincompute.engine.parts import Part
from pincompute.engine.platform import Platform
from pincompute.engine.pod_services import prepare_store, store_part

NAME = "secret-store"


def prepare_secret_store(platform: Platform) -> None:
    """Issue its certificate, and write its kubeconfig and its keys."""
    prepare_store(platform, SECRET_STORE)
    make_private_folder(platform.home.data / "secrets")
    # With a database and without its keys nothing could be read: new keys would hide that.
    if not _database(platform).exists():
        create_key_file(_keys(platform))


def secret_stages(platform: Platform) -> list[list[Part]]:
    """Started after the API server, and before the pods that wait for it."""
    if not platform.secret_store_url:
        return []
    options = ("--database", _database(platform), "--keys", _keys(platform))
    return [[], [store_part(platform, NAME, SECRET_STORE, *options)]]


def _database(platform: Platform) -> Path:
    return platform.home.data / "secrets" / "secrets.sqlite"


def _keys(platform: Platform) -> Path:
    """Outside of the data, so that a copy of the data decrypts nothing."""
    return platform.home.root / "secret-store.keys"
