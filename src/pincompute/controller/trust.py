"""What the pods of a cluster trust: the roots of its trust domain, published for everybody."""

from __future__ import annotations

from pincompute.api.names import IDENTITY
from pincompute.kube.resource import TRUST_BUNDLES, Object


def trust_bundle(roots: str) -> Object:
    """Pods find it by the name of the signer that it is of."""
    return {
        "apiVersion": TRUST_BUNDLES.api_version,
        "kind": TRUST_BUNDLES.kind,
        "metadata": {"name": f"{IDENTITY.replace('/', ':')}:root"},
        "spec": {"signerName": IDENTITY, "trustBundle": roots},
    }
