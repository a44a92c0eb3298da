"""Sessions of browsers: how they begin, and what a page learns of its own."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from pincompute.api.structs import LenientStruct

OPENID_PATH = "/session/openid"
CALLBACK_PATH = f"{OPENID_PATH}/callback"
MAX_RETURN_CHARS = 1_024


class SessionLink(LenientStruct, frozen=True, omit_defaults=False):
    code: str
    """For `POST /session`, once: the address `/#signin=CODE` sends it."""
    expires: str


class SessionCode(LenientStruct, frozen=True):
    code: Annotated[str, Meta(max_length=128)]
    """The code of a one-time link."""


class SessionInfo(LenientStruct, frozen=True, omit_defaults=False):
    user: str
    administrator: bool
    """Of the platform, with access to every project."""
    csrf: str
    """Value of the header `Pin-Csrf`, which a session needs for everything but reading; empty for a bearer token."""
    expires: str
    """When the session ends in any case; empty for a bearer token that does not expire."""
    openid: bool
    """Browsers can sign in at `/session/openid`."""


class SignInQuery(LenientStruct, frozen=True):
    return_to: Annotated[str, Meta(max_length=MAX_RETURN_CHARS)] = "/"
    """Path of this desk to which the browser goes afterwards."""


class SignInCallback(LenientStruct, frozen=True):
    """The provider's answer to the browser (OAuth 2.0, RFC 9207)."""

    code: Annotated[str, Meta(max_length=4_096)] = ""
    state: Annotated[str, Meta(max_length=256)] = ""
    iss: Annotated[str, Meta(max_length=1_024)] = ""
    """Issuer of the answer, from a provider that names it."""
    error: Annotated[str, Meta(max_length=256)] = ""
    error_description: Annotated[str, Meta(max_length=1_024)] = msgspec.field(default="", name="error_description")


class SessionsQuery(LenientStruct, frozen=True):
    user: Annotated[str, Meta(max_length=256)] = ""
    """Of another user, for administrators. Default: the caller."""


class EndedSessions(LenientStruct, frozen=True, omit_defaults=False):
    user: str
    ended: int
    """Number of sessions that were ended."""
