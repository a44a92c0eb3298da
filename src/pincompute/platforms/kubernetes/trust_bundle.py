"""The ClusterTrustBundle with the root certificates of the cluster's trust domain, which pods mount."""

from __future__ import annotations

from pincompute.api.names import IDENTITY_SIGNER
from pincompute.kube.resource import CLUSTER_TRUST_BUNDLES, Object


def trust_bundle(roots: str) -> Object:
    """Pods select the bundle by the name of its signer."""
    return {
        "apiVersion": CLUSTER_TRUST_BUNDLES.api_version,
        "kind": CLUSTER_TRUST_BUNDLES.kind,
        "metadata": {"name": f"{IDENTITY_SIGNER.replace('/', ':')}:root"},
        "spec": {"signerName": IDENTITY_SIGNER, "trustBundle": roots},
    }
