"""Secret service: the secret store, its keys, and the Service by which pods reach it."""

from __future__ import annotations

import sys
from pathlib import Path

from pincompute import __version__
from pincompute.api.names import ENGINE, SECRET_STORE
from pincompute.base.key_file import create_key_file
from pincompute.base.secure_files import make_private_folder
from pincompute.engine.identity import issue_part_identity
from pincompute.engine.kubeconfigs import write_kubeconfig
from pincompute.engine.manifest_files import fill_manifest
from pincompute.engine.own_services import CODE_VARIABLE, code_digest
from pincompute.engine.parts import HttpProbe, Part
from pincompute.engine.platform import Platform
from pincompute.kube.client import Client
from pincompute.kube.resource import ENDPOINT_SLICES, SERVICES

_GROUP = ("pincompute:system",)
_NAME = "secret-store"
_RESOURCES = {each.kind: each for each in (SERVICES, ENDPOINT_SLICES)}


def prepare_secret_store(platform: Platform) -> None:
    """Issue its certificate, and write its kubeconfig and its keys."""
    platform.authority.issue(SECRET_STORE, groups=_GROUP, hosts=(platform.address,))
    write_kubeconfig(platform, SECRET_STORE)
    make_private_folder(platform.home.data / "secrets")
    # With a database and without its keys nothing could be read: new keys would hide that.
    if not _database(platform).exists():
        create_key_file(_keys(platform))


async def apply_secret_store_service(client: Client, platform: Platform) -> None:
    """Create the Service by which pods reach the secret store."""
    port = platform.ports["secret-store-pods"]
    for object_ in fill_manifest("secret_store", address=platform.address, port=port):
        await client.apply(object_, _RESOURCES[object_["kind"]], manager=ENGINE)


def secret_stages(platform: Platform) -> list[list[Part]]:
    """Started after the API server, and before the pods that wait for it."""
    return [[], [_store(platform)]] if platform.secret_store_url else []


def _store(platform: Platform) -> Part:
    authority = platform.authority
    arguments = (
        "agent", "secret-store",
        "--kubeconfig", platform.kubeconfig_of(SECRET_STORE),
        "--listen", platform.secret_store_url.removeprefix("https://"),
        "--certificate", authority.certificate(SECRET_STORE),
        "--trust", authority.bundle,
        "--listen-to-pods", f"{platform.address}:{platform.ports['secret-store-pods']}",
        "--identity", issue_part_identity(platform, _NAME),
        "--database", _database(platform),
        "--keys", _keys(platform),
    )  # fmt: skip
    command = (sys.executable, "-m", "pincompute", *map(str, arguments))
    probe = HttpProbe(f"{platform.secret_store_url}/healthz", client_certificate=SECRET_STORE)
    return Part(_NAME, command, probe, {CODE_VARIABLE: code_digest()}, version=__version__)


def _database(platform: Platform) -> Path:
    return platform.home.data / "secrets" / "secrets.sqlite"


def _keys(platform: Platform) -> Path:
    """Outside of the data, so that a copy of the data decrypts nothing."""
    return platform.home.root / "secret-store.keys"
