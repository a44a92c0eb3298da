"""Secrets are encrypted at rest, and those of before are rewritten once."""

from __future__ import annotations

import asyncio
import base64
from pathlib import Path
from typing import cast

import msgspec
import pytest
import yaml

from pincompute.base.certificate_authority import Authority
from pincompute.engine import control_plane, secret_encryption
from pincompute.engine.home import Home
from pincompute.engine.platform import Platform, Programs
from pincompute.engine.ports import choose_ports
from pincompute.engine.secret_encryption import configuration_file, rewrite_secrets
from pincompute.kube.client import Client, ListResult
from pincompute.kube.errors import Conflict, NotFound
from pincompute.kube.resource import Object, Resource


@pytest.fixture
def platform(tmp_path: Path) -> Platform:
    home = Home("t", tmp_path / "t")
    authority = Authority(home.certificates)
    authority.establish()
    return Platform(home, Programs(tmp_path), authority, choose_ports({}, None))


def test_new_secrets_are_encrypted_with_a_private_key_that_stays(platform: Platform):
    secret_encryption.write_configuration(platform)
    file = configuration_file(platform)
    first = file.read_text()
    (rule,) = yaml.safe_load(first)["resources"]
    assert rule["resources"] == ["secrets"]
    # The first provider encrypts. `identity` only reads what was written before.
    assert [next(iter(each)) for each in rule["providers"]] == ["secretbox", "identity"]
    key = rule["providers"][0]["secretbox"]["keys"][0]["secret"]
    assert len(base64.b64decode(key)) == 32
    for private in (file, platform.home.certificates / "secret-encryption.key"):
        assert private.stat().st_mode & 0o777 == 0o600
    secret_encryption.write_configuration(platform)
    assert file.read_text() == first
    assert f"--encryption-provider-config={file}" in control_plane.api_server(platform).command


def test_etcd_trusts_an_authority_of_its_own(platform: Platform):
    control_plane.issue_certificates(platform)
    etcd, server = control_plane.etcd(platform), control_plane.api_server(platform)
    own, platforms = control_plane.etcd_authority(platform).bundle, platform.authority.bundle
    assert own.read_bytes() != platforms.read_bytes()
    assert f"--trusted-ca-file={own}" in etcd.command
    assert f"--peer-trusted-ca-file={own}" in etcd.command
    assert f"--etcd-cafile={own}" in server.command
    assert not any(str(platforms) in word.split("=") for word in etcd.command)
    # The API server's certificate for its own clients is not one for etcd.
    assert f"--etcd-certfile={platform.authority.certificate('kube-apiserver')}" not in server.command


class FakeClient:
    """Two Secrets; others write or delete some of them meanwhile."""

    def __init__(self, failures: dict[str, Exception]) -> None:
        self.failures = failures
        self.written: dict[str, Object] = {}

    async def list(self, resource: Resource) -> ListResult:
        assert resource.kind == "Secret"
        return ListResult([secret(name) for name in ("a", "b", "c")], "7")

    async def raw(self, method: str, path: str, *, body: bytes) -> bytes:
        assert method == "PUT"
        name = path.rpartition("/")[2]
        if name in self.failures:
            raise self.failures[name]
        self.written[path] = msgspec.json.decode(body)
        return b"{}"


def secret(name: str) -> Object:
    return {"metadata": {"name": name, "namespace": "me", "resourceVersion": "5"}, "data": {"key": "eA=="}}


def test_every_secret_is_rewritten_unchanged():
    client = FakeClient({})
    asyncio.run(rewrite_secrets(cast("Client", client)))
    assert client.written == {f"/api/v1/namespaces/me/secrets/{name}": secret(name) for name in ("a", "b", "c")}


def test_secrets_that_others_write_or_delete_meanwhile_need_no_rewriting():
    conflict, gone = Conflict.__new__(Conflict), NotFound.__new__(NotFound)
    client = FakeClient({"a": conflict, "b": gone})
    asyncio.run(rewrite_secrets(cast("Client", client)))
    assert list(client.written) == ["/api/v1/namespaces/me/secrets/c"]
