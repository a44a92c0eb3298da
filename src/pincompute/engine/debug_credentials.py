"""Credentials for debugging: the certificate of the node's agent, and the key of the desk's grants for it."""

from __future__ import annotations

from pathlib import Path

from pincompute.engine.platform import Platform

PORT = 10260
"""On the address of each node."""
CERTIFICATE, _GRANTS = "debug", "debug-grants"


def issue_debug_credentials(platform: Platform) -> None:
    """Issue the certificate of the agent, and the key with which the desk signs grants."""
    platform.authority.issue(CERTIFICATE, hosts=(platform.node_address,))
    platform.authority.issue_key(_GRANTS)


def desk_options(platform: Platform) -> tuple[object, ...]:
    """Options by which the desk opens sessions; none without a real node."""
    if not platform.real:
        return ()
    return (
        "--debug-port",
        PORT,
        "--debug-key",
        platform.authority.key(_GRANTS),
        "--debug-roots",
        platform.authority.bundle,
    )


def public_key(platform: Platform) -> Path:
    """Verifies grants."""
    return platform.authority.key(_GRANTS).with_suffix(".pub")
