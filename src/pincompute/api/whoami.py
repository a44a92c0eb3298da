"""Identity and memberships of the caller, as `pin whoami` shows them."""

from __future__ import annotations

import msgspec

from pincompute.api.identity import IdentityType
from pincompute.api.membership import ProjectRole

DEFAULT_SCOPES = "openid email offline_access"


class SignIn(msgspec.Struct, frozen=True):
    """OpenID Connect settings for clients. Without an issuer, sign-in is disabled."""

    issuer: str = ""
    client: str = ""
    scopes: str = DEFAULT_SCOPES
    browser: bool = False
    """Browsers can sign in at `/session/openid`."""


class Membership(msgspec.Struct, frozen=True, kw_only=True):
    project: str
    role: ProjectRole
    owner: str
    contact: str = ""


class Whoami(msgspec.Struct, frozen=True):
    name: str
    type: IdentityType
    groups: list[str] = []
    is_admin: bool = msgspec.field(default=False)
    """Platform administrator, with access to every project."""
    valid_until: str = ""
    """Expiry of the session; empty if it does not expire."""
    projects: list[Membership] = []
