"""Encryption of Secrets at rest: the API server encrypts them before it writes them to etcd.

The key is in `certificates/secret-encryption.key`, so that a copy or a backup of etcd's data reveals no Secret.
For a key that is not on this machine, a `kms` provider takes the place of `secretbox` in `encryption_configuration`,
with the former provider after it until all Secrets are rewritten.
"""

from __future__ import annotations

import asyncio
import base64
import secrets
from pathlib import Path

import msgspec
import yaml

from pincompute.base.secure_files import write_private_file
from pincompute.engine.config_files import write_if_changed
from pincompute.engine.platform import Platform
from pincompute.kube.client import Client
from pincompute.kube.errors import Conflict, NotFound
from pincompute.kube.resource import SECRETS, Object

_KEY_BYTES = 32
_MAX_CONCURRENT_REQUESTS = 10


def configuration_file(platform: Platform) -> Path:
    return platform.home.configs / "secret-encryption.yaml"


def write_configuration(platform: Platform) -> None:
    """Write the configuration of the API server; create the key once."""
    file = platform.home.certificates / "secret-encryption.key"
    if not file.exists():
        write_private_file(file, base64.b64encode(secrets.token_bytes(_KEY_BYTES)))
    write_if_changed(configuration_file(platform), yaml.safe_dump(encryption_configuration(file.read_text())))


def encryption_configuration(key: str) -> Object:
    """The first provider encrypts; the second reads Secrets of a platform that was started before encryption."""
    providers: list[Object] = [{"secretbox": {"keys": [{"name": "key1", "secret": key}]}}, {"identity": {}}]
    return {
        "apiVersion": "apiserver.config.k8s.io/v1",
        "kind": "EncryptionConfiguration",
        "resources": [{"resources": ["secrets"], "providers": providers}],
    }


async def rewrite_secrets(client: Client) -> None:
    """Write every Secret unchanged, which encrypts those that are stored in plain text."""
    gate = asyncio.Semaphore(_MAX_CONCURRENT_REQUESTS)

    async def rewrite(secret: Object) -> None:
        namespace, name = secret["metadata"]["namespace"], secret["metadata"]["name"]
        async with gate:
            try:
                await client.raw("PUT", SECRETS.path(namespace, name), body=msgspec.json.encode(secret))
            except (Conflict, NotFound):
                # Written or deleted by another client meanwhile.
                return

    await asyncio.gather(*(rewrite(each) for each in (await client.list(SECRETS)).items))
