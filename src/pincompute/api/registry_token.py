"""A token with which a member of a project pushes an image to the platform's own registry."""

from __future__ import annotations

import msgspec


class RegistryToken(msgspec.Struct, frozen=True, kw_only=True):
    token: str
    """Bearer token of the Docker Registry v2 protocol, for this repository only."""
    expires_in: int
    """Seconds; requests that have begun are not interrupted."""
    registry: str
    """Address of the registry, such as `127.0.0.1:25001`."""
    repository: str
    """`PROJECT/NAME`."""
    authority: str
    """CA certificate that verifies the registry, as PEM."""
