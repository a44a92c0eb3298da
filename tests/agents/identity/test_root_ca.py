"""Root authority in a cluster, against a real API server: one root for all signers, renewal and repair."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import AsyncIterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509

from control_plane import ControlPlane
from pincompute.agents.identity.issuer import Issuer
from pincompute.agents.identity.root_ca import RootAuthority
from pincompute.api.names import CLUSTER_FACTS_CONFIGMAP, SIGNER, SYSTEM_NAMESPACE
from pincompute.base.clock import SystemClock
from pincompute.kube.client import Client
from pincompute.kube.errors import AlreadyExists
from pincompute.kube.resource import CLUSTER_TRUST_BUNDLES, CONFIG_MAPS, NAMESPACES, SECRETS

pytestmark = pytest.mark.cluster

BUNDLE = "pinterest.com:identity:root"


class FutureClock(SystemClock):
    """Clock that runs some days ahead."""

    def __init__(self, days: int) -> None:
        self._after = timedelta(days=days)

    def now(self) -> datetime:
        return datetime.now(UTC) + self._after


@pytest.fixture
async def client(plane: ControlPlane) -> AsyncIterator[Client]:
    async with Client(plane.access(), agent="tests") as client:
        with suppress(AlreadyExists):
            await client.create(NAMESPACES, {"metadata": {"name": SYSTEM_NAMESPACE}}, manager="tests")
        facts = {
            "metadata": {"name": CLUSTER_FACTS_CONFIGMAP, "namespace": SYSTEM_NAMESPACE},
            "data": {"trustDomain": "there.local"},
        }
        await client.apply(facts, CONFIG_MAPS, manager="tests")
        yield client
        await client.delete(CONFIG_MAPS, CLUSTER_FACTS_CONFIGMAP, SYSTEM_NAMESPACE)
        await client.delete(SECRETS, SIGNER, SYSTEM_NAMESPACE)
        await client.delete(CLUSTER_TRUST_BUNDLES, BUNDLE)


def pair(root: RootAuthority) -> tuple[bytes, bytes]:
    return root.certificate.read_bytes(), root.key.read_bytes()


async def roots(client: Client) -> list[x509.Certificate]:
    bundle = await client.get(CLUSTER_TRUST_BUNDLES, BUNDLE)
    return x509.load_pem_x509_certificates(bundle["spec"]["trustBundle"].encode())


async def test_concurrent_signers_share_one_root(client: Client, tmp_path: Path) -> None:
    authorities = [RootAuthority(client, tmp_path / str(number)) for number in range(4)]
    await asyncio.gather(*(each.establish() for each in authorities))
    assert len({pair(each) for each in authorities}) == 1
    (root,) = await roots(client)
    signer = x509.load_pem_x509_certificate(authorities[0].certificate.read_bytes())
    signer.verify_directly_issued_by(root)
    assert Issuer(authorities[0].certificate, authorities[0].key).trust_domain == "there.local"
    secret = await client.get(SECRETS, SIGNER, SYSTEM_NAMESPACE)
    await authorities[0].reconcile()
    unchanged = await client.get(SECRETS, SIGNER, SYSTEM_NAMESPACE)
    assert unchanged["metadata"]["resourceVersion"] == secret["metadata"]["resourceVersion"], "nothing to renew"


async def test_renewal_keeps_previous_root_trusted(plane: ControlPlane, client: Client, tmp_path: Path) -> None:
    first = RootAuthority(client, tmp_path / "first")
    await first.establish()
    before, (root,) = pair(first), await roots(client)
    async with Client(plane.access(), agent="tests", clock=FutureClock(300)) as later:
        await RootAuthority(later, tmp_path / "later").reconcile()
    await first.reconcile()
    assert pair(first) != before, "uses the certificate that another signer renewed"
    assert await roots(client) == [root], "the root is valid for ten years"
    async with Client(plane.access(), agent="tests", clock=FutureClock(2600)) as later:
        await RootAuthority(later, tmp_path / "latest").reconcile()
    new, previous = await roots(client)
    assert (new != root, previous) == (True, root)
    await first.reconcile()
    x509.load_pem_x509_certificate(first.certificate.read_bytes()).verify_directly_issued_by(new)


async def test_recreates_deleted_secret(client: Client, tmp_path: Path) -> None:
    root = RootAuthority(client, tmp_path / "only")
    await root.establish()
    before = pair(root)
    await client.delete(SECRETS, SIGNER, SYSTEM_NAMESPACE)
    await root.reconcile()
    secret = await client.get(SECRETS, SIGNER, SYSTEM_NAMESPACE)
    assert base64.b64decode(secret["data"][root.key.name]) == before[1]
    assert pair(root) == before
