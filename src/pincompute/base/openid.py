"""What both who signs in and who lets in know of OpenID: where a provider tells of itself, and what a token says."""

from __future__ import annotations

from base64 import urlsafe_b64decode
from typing import Any

import msgspec

DISCOVERY = "/.well-known/openid-configuration"


def claims(token: str) -> dict[str, Any]:
    """What a JWT says, unproven: good for telling who is to judge it, and when it ends. Empty where it is none."""
    parts = token.split(".")
    if len(parts) != 3:
        return {}
    try:
        body = parts[1] + "=" * (-len(parts[1]) % 4)
        found: dict[str, Any] = msgspec.json.decode(urlsafe_b64decode(body), type=dict[str, Any])
    except (ValueError, RecursionError):
        return {}
    return found
