"""The root of trust that signers make in the cluster, against a real API server: one for all, whoever is first."""

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
from pincompute.agents.identity.issuing import Issuer
from pincompute.agents.identity.root import Root
from pincompute.api.names import CLUSTER_FACTS, SIGNER, SYSTEM
from pincompute.base.clock import SystemClock
from pincompute.kube.client import Client
from pincompute.kube.errors import AlreadyExists
from pincompute.kube.resource import CONFIG_MAPS, NAMESPACES, SECRETS, TRUST_BUNDLES

pytestmark = pytest.mark.cluster

BUNDLE = "pinterest.com:identity:root"


class Later(SystemClock):
    """Years from now."""

    def __init__(self, days: int) -> None:
        self._after = timedelta(days=days)

    def now(self) -> datetime:
        return datetime.now(UTC) + self._after


@pytest.fixture
async def client(plane: ControlPlane) -> AsyncIterator[Client]:
    async with Client(plane.access(), agent="tests") as client:
        with suppress(AlreadyExists):
            await client.create(NAMESPACES, {"metadata": {"name": SYSTEM}}, manager="tests")
        facts = {"metadata": {"name": CLUSTER_FACTS, "namespace": SYSTEM}, "data": {"trustDomain": "there.local"}}
        await client.apply(facts, CONFIG_MAPS, manager="tests")
        yield client
        await client.delete(CONFIG_MAPS, CLUSTER_FACTS, SYSTEM)
        await client.delete(SECRETS, SIGNER, SYSTEM)
        await client.delete(TRUST_BUNDLES, BUNDLE)


def pair(root: Root) -> tuple[bytes, bytes]:
    return root.certificate.read_bytes(), root.key.read_bytes()


async def roots(client: Client) -> list[x509.Certificate]:
    bundle = await client.get(TRUST_BUNDLES, BUNDLE)
    return x509.load_pem_x509_certificates(bundle["spec"]["trustBundle"].encode())


async def test_of_signers_that_begin_together_all_go_by_one_root_and_pods_trust_it(
    client: Client, tmp_path: Path
) -> None:
    made = [Root(client, tmp_path / str(number)) for number in range(4)]
    await asyncio.gather(*(each.establish() for each in made))
    assert len({pair(each) for each in made}) == 1
    (root,) = await roots(client)
    signer = x509.load_pem_x509_certificate(made[0].certificate.read_bytes())
    signer.verify_directly_issued_by(root)
    assert Issuer(made[0].certificate, made[0].key).trust_domain == "there.local"
    secret = await client.get(SECRETS, SIGNER, SYSTEM)
    await made[0].keep()
    again = await client.get(SECRETS, SIGNER, SYSTEM)
    assert again["metadata"]["resourceVersion"] == secret["metadata"]["resourceVersion"], "nothing was old"


async def test_what_grows_old_is_renewed_and_what_it_vouched_for_is_still_believed(
    plane: ControlPlane, client: Client, tmp_path: Path
) -> None:
    first = Root(client, tmp_path / "first")
    await first.establish()
    before, (root,) = pair(first), await roots(client)
    async with Client(plane.access(), agent="tests", clock=Later(300)) as later:
        await Root(later, tmp_path / "later").keep()
    await first.keep()
    assert pair(first) != before, "what another renewed is taken up"
    assert await roots(client) == [root], "the root has ten years"
    async with Client(plane.access(), agent="tests", clock=Later(2600)) as later:
        await Root(later, tmp_path / "latest").keep()
    new, former = await roots(client)
    assert (new != root, former) == (True, root)
    await first.keep()
    x509.load_pem_x509_certificate(first.certificate.read_bytes()).verify_directly_issued_by(new)


async def test_a_secret_that_somebody_removed_is_written_again_by_whoever_still_has_it(
    client: Client, tmp_path: Path
) -> None:
    root = Root(client, tmp_path / "only")
    await root.establish()
    before = pair(root)
    await client.delete(SECRETS, SIGNER, SYSTEM)
    await root.keep()
    secret = await client.get(SECRETS, SIGNER, SYSTEM)
    assert base64.b64decode(secret["data"][root.key.name]) == before[1]
    assert pair(root) == before
