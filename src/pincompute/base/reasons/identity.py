"""Reasons of workload identity and its certificates."""

from __future__ import annotations

from pincompute.base.reasons.reason import infrastructure_error, user_error

IDENTITY_MISSING = infrastructure_error(
    "IdentityMissing",
    503,
    "A program needs its identity, and its pod has no certificate.",
    "The pod's runtime must contain the part `identity`; simulated pods never have one.",
)
PEER_REFUSED = user_error(
    "PeerRefused",
    403,
    "A peer's certificate is not a valid SPIFFE X.509-SVID.",
    "Only certificates of the platform's signer are accepted; the message names the violated rule.",
)
IDENTITY_DENIED = infrastructure_error(
    "IdentityDenied",
    403,
    "A pod requested the certificate of a workload, and was not created for it by the operator.",
    "The message names the difference. Create pods by deploying workloads: `pin deploy`.",
)
IDENTITY_FAILED = infrastructure_error(
    "IdentityFailed",
    503,
    "The signer could not issue a certificate that the cluster accepts.",
    "The message holds the cluster's error; compare the clocks of the machines first.",
)
UNSUPPORTED_KEY_TYPE = user_error(
    "UnsupportedKeyType",
    422,
    "A pod requested a certificate for an unsupported key type.",
    "Use ECDSAP256, as the part `identity` does.",
)
