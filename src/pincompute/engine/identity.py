"""Workload identity of a platform: the root CA of its trust domain, the signer's CA under it, the trust bundle."""

from __future__ import annotations

from pathlib import Path

from pincompute.api.names import ENGINE, SIGNER, SYSTEM_NAMESPACE
from pincompute.base.certificate_authority import Authority
from pincompute.base.secure_files import write_private_file
from pincompute.engine.platform import Platform
from pincompute.kube.client import Client
from pincompute.kube.resource import CLUSTER_TRUST_BUNDLES
from pincompute.objects.spiffe import SpiffeId
from pincompute.platforms.kubernetes.trust_bundle import trust_bundle


def identity_authority(platform: Platform) -> Authority:
    """Root CA of the trust domain.

    It is separate from the CA of the API server's clients, so that no signer of pod certificates can issue an
    administrator's certificate.
    """
    return platform.authority.beneath("identity", platform.trust_domain)


def issue_signer_certificate(platform: Platform) -> None:
    own = identity_authority(platform)
    own.establish()
    own.delegate(SIGNER, str(SpiffeId(platform.trust_domain)))


def issue_part_identity(platform: Platform, name: str) -> Path:
    """Issue the identity of a part that pods connect to, `spiffe://…/pincompute-system/NAME`; return its folder."""
    own = identity_authority(platform)
    own.establish()
    own.issue(name, hosts=(str(SpiffeId(platform.trust_domain, (SYSTEM_NAMESPACE, name))),))
    folder = own.folder / name
    write_private_file(folder / "identity.pem", own.key(name).read_bytes() + own.certificate(name).read_bytes())
    write_private_file(folder / "trust.pem", own.bundle.read_bytes())
    return folder


async def publish_trust_bundle(client: Client, platform: Platform) -> None:
    bundle = trust_bundle(identity_authority(platform).bundle.read_text())
    await client.apply(bundle, CLUSTER_TRUST_BUNDLES, manager=ENGINE)
