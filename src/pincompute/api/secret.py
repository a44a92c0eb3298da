"""Secrets in the API: metadata, requests of members, and the commands that the desk sends to the secret store.

Values occur in `SecretValue`, `NewSecret` and `NewSecretVersion` only. Those have no `repr` with a value, so that no
log line or traceback shows one.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import msgspec
from msgspec import Meta

from pincompute.api.structs import LenientStruct, StrictStruct
from pincompute.objects.secret_reference import MAX_SECRET_VERSION

MAX_VALUE_BYTES = 64 << 10
MAX_LOG_ENTRIES = 500
MAX_LOG_NUMBER = 2**62
_BASE64_CHARS = (MAX_VALUE_BYTES + 2) // 3 * 4

SecretBytes = Annotated[bytes, Meta(min_length=1, max_length=MAX_VALUE_BYTES, description="The value, as Base64.")]
Version = Annotated[int, Meta(ge=1, le=MAX_SECRET_VERSION)]
GRANTEE_PATTERN = (
    r"^(project:[a-z0-9]([-a-z0-9]*[a-z0-9])?"
    r"|workload:[a-z0-9]([-a-z0-9]*[a-z0-9])?/[a-z0-9]([-a-z0-9]*[a-z0-9])?"
    r"|(person|group):[^\s\x00-\x1f]+)$"
)
Grantee = Annotated[
    str,
    Meta(
        pattern=GRANTEE_PATTERN,
        max_length=256,
        description="project:NAME, workload:PROJECT/NAME, person:NAME or group:NAME.",
    ),
]


class VersionState(StrEnum):
    PRIMARY = "primary"
    """What workloads get that name no version."""
    ACTIVE = "active"
    """Can still be used: by workloads that name it, and to check what was signed with it."""
    INACTIVE = "inactive"
    """Nobody gets it any more."""


class SecretVersion(LenientStruct, frozen=True, omit_defaults=False):
    number: int
    state: VersionState
    created_at: str
    created_by: str
    bytes: int
    """Length of the value."""


class SecretGrant(LenientStruct, frozen=True, omit_defaults=False):
    grantee: str
    granted_at: str
    granted_by: str


class SecretReader(LenientStruct, frozen=True, omit_defaults=False):
    """The last read of a version by a workload or person."""

    reader: str
    version: int
    last_read_at: str


class SecretSummary(LenientStruct, frozen=True, omit_defaults=False):
    name: str
    primary: int
    """Number of the primary version."""
    versions: int
    """Number of versions, with inactive ones."""
    rotated_at: str
    """Time of the newest version."""
    rotated_by: str


class SecretDetail(LenientStruct, frozen=True, omit_defaults=False):
    """Everything about a secret but its values."""

    project: str
    name: str
    versions: list[SecretVersion]
    """Newest first."""
    grants: list[SecretGrant]
    readers: list[SecretReader]
    """Newest first."""


class SecretLogEntry(LenientStruct, frozen=True, omit_defaults=False):
    number: int
    at: str
    caller: str
    act: str
    name: str
    version: int = 0
    """0 if the act is not of one version."""
    note: str = ""


class SecretLogPage(LenientStruct, frozen=True, omit_defaults=False):
    entries: list[SecretLogEntry]
    """Newest first."""
    next: int | None = None
    """`before` of the next page; None on the last one."""


class SecretLogQuery(LenientStruct, frozen=True):
    """Query parameters of the log of a secret."""

    limit: Annotated[int, Meta(ge=1, le=MAX_LOG_ENTRIES)] = 100
    """Maximum number of entries; at most 500."""
    before: Annotated[int, Meta(ge=1, le=MAX_LOG_NUMBER)] = MAX_LOG_NUMBER
    """Only entries with a smaller number: the `next` of the page before."""


class _Hidden:
    """Has no representation with its fields."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"{type(self).__name__}(…)"


class SecretValue(_Hidden, LenientStruct, frozen=True, omit_defaults=False):
    version: int
    value: bytes


class NewSecret(_Hidden, StrictStruct, frozen=True):
    """Request: create a secret, with its first version."""

    value: SecretBytes


class NewSecretVersion(_Hidden, StrictStruct, frozen=True):
    """Request: add a version."""

    value: SecretBytes
    promote: Annotated[bool, Meta(description="Make it the primary version; true by default.")] = True


class VersionChange(StrictStruct, frozen=True):
    """Request: change the state of a version."""

    state: VersionState


class GrantChange(StrictStruct, frozen=True):
    """Request: grant a secret, or revoke the grant."""

    grantee: Grantee


class VersionQuery(LenientStruct, frozen=True):
    version: Annotated[int, Meta(ge=0, le=MAX_SECRET_VERSION)] = 0
    """The primary version by default."""


class ForceQuery(LenientStruct, frozen=True):
    force: bool = False
    """Also if workloads name the secret."""


class _Command(_Hidden, msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="command"):
    """Base of the commands of the desk, which has authorized the caller."""

    project: str
    caller: str = ""


class ListSecrets(_Command, frozen=True, tag="list"):
    pass


class CreateSecret(_Command, frozen=True, tag="create"):
    name: str
    value: bytes


class AddVersion(_Command, frozen=True, tag="add-version"):
    name: str
    value: bytes
    promote: bool = True


class SetVersionState(_Command, frozen=True, tag="set-state"):
    name: str
    version: int
    state: VersionState


class GrantSecret(_Command, frozen=True, tag="grant"):
    name: str
    grantee: str


class RevokeSecret(_Command, frozen=True, tag="revoke"):
    name: str
    grantee: str


class DescribeSecret(_Command, frozen=True, tag="describe"):
    name: str


class RevealSecret(_Command, frozen=True, tag="reveal"):
    name: str
    version: int = 0
    grantees: list[str] = []
    """`person:ann` and `group:oncall`, as which the caller may hold a grant."""
    is_owner: bool = False


class DeleteSecret(_Command, frozen=True, tag="delete"):
    name: str


class ReadSecretLog(_Command, frozen=True, tag="log"):
    name: str
    limit: int
    before: int


class CheckReferences(_Command, frozen=True, tag="check"):
    """Whether a workload may have the secrets that it names."""

    workload: str
    references: list[str]


class CheckedReferences(LenientStruct, frozen=True, omit_defaults=False):
    problems: list[dict[str, object]]
    """As in the `errors` of a problem document."""
    versions: dict[str, int] = {}
    """Of each reference: the version that a replica gets now."""


SecretCommand = (
    ListSecrets
    | CreateSecret
    | AddVersion
    | SetVersionState
    | GrantSecret
    | RevokeSecret
    | DescribeSecret
    | RevealSecret
    | DeleteSecret
    | ReadSecretLog
    | CheckReferences
)
