"""OpenID facts that both the CLI and the desk need: the discovery path and the claims of a token."""

from __future__ import annotations

from base64 import urlsafe_b64decode
from typing import Any

import msgspec

DISCOVERY = "/.well-known/openid-configuration"


def unverified_claims(token: str) -> dict[str, Any]:
    """The claims of a JWT without verification of its signature; empty if it is not a JWT.

    They only select the provider that verifies the token, and tell the CLI when to refresh it.
    """
    parts = token.split(".")
    if len(parts) != 3:
        return {}
    try:
        body = parts[1] + "=" * (-len(parts[1]) % 4)
        decoded: dict[str, Any] = msgspec.json.decode(urlsafe_b64decode(body), type=dict[str, Any])
    except (ValueError, RecursionError):
        return {}
    return decoded
