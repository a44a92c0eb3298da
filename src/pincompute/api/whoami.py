"""What the desk tells somebody of themselves."""

from __future__ import annotations

import msgspec

from pincompute.api.identity import Sort
from pincompute.api.membership import Role

SCOPES = "openid email offline_access"


class SignIn(msgspec.Struct, frozen=True):
    """Where people sign in before they come here; without an issuer nobody can."""

    issuer: str = ""
    client: str = ""
    scopes: str = SCOPES


class Membership(msgspec.Struct, frozen=True, kw_only=True):
    project: str
    role: Role
    owner: str
    contact: str = ""


class Whoami(msgspec.Struct, frozen=True):
    name: str
    sort: Sort
    groups: list[str] = []
    administers: bool = msgspec.field(default=False)
    """The platform, and so every project."""
    until: str = ""
    """When they have to sign in again; empty where they never have to."""
    projects: list[Membership] = []
