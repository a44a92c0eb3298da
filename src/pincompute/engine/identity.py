"""Who a platform's pods are: the root of its trust domain, the signer under it, and what everybody trusts by it."""

from __future__ import annotations

from pathlib import Path

from pincompute.api.names import ENGINE, SIGNER, SYSTEM
from pincompute.base.certificates import Authority, write_private
from pincompute.controller.trust import trust_bundle
from pincompute.engine.platform import Platform
from pincompute.kube.client import Client
from pincompute.kube.resource import TRUST_BUNDLES
from pincompute.objects.spiffe import SpiffeId


def authority(platform: Platform) -> Authority:
    """A root of its own: whom the API server believes who is an administrator is no matter of any signer's."""
    return Authority(platform.home.certificates / "identity", name=platform.trust_domain)


def certify(platform: Platform) -> None:
    own = authority(platform)
    own.establish()
    own.delegate(SIGNER, str(SpiffeId(platform.trust_domain)))


def vouch(platform: Platform, name: str) -> Path:
    """The folder with the identity of a part that pods speak to: `spiffe://…/pincompute-system/NAME`."""
    own = authority(platform)
    own.establish()
    own.issue(name, hosts=(str(SpiffeId(platform.trust_domain, (SYSTEM, name))),))
    folder = own.folder / name
    write_private(folder / "identity.pem", own.key(name).read_bytes() + own.certificate(name).read_bytes())
    write_private(folder / "trust.pem", own.bundle.read_bytes())
    return folder


async def furnish(client: Client, platform: Platform) -> None:
    bundle = trust_bundle(authority(platform).bundle.read_text())
    await client.apply(bundle, TRUST_BUNDLES, manager=ENGINE)
