"""Review policy of a project: repository, protected branch, and the keys of reviewers and builders."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Annotated

from msgspec import Meta

from pincompute.api.custom_resource import FieldError
from pincompute.api.structs import StrictStruct

_Key = Annotated[str, Meta(min_length=1, max_length=1024)]
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)(://|::)")
_LOOPBACK = re.compile(r"http://([^/@?#\\]*@)?(localhost|127\.0\.0\.1|\[::1\])(:\d+)?(/|$)")


def repository_error(address: str) -> str:
    """Why a repository is not read from this address; empty if it is.

    Anyone on the way could change what `http://` and `git://` transfer, and `ext::` executes a command. Plain HTTP is
    accepted from this machine, where nobody is on the way.
    """
    scheme = _SCHEME.match(address)
    if scheme is None or address.startswith(("https://", "ssh://", "file://")) or _LOOPBACK.match(address):
        return ""
    return f"{scheme[0]} is not accepted: it must be https://, ssh://, HOST:PATH of SSH, or a local path"


class Landing(StrictStruct, frozen=True, kw_only=True):
    """Requirements for a build to count as reviewed and landed."""

    repository: Annotated[
        str,
        Meta(
            description="Git repository from which the desk reads landed commits, such as "
            "https://git.example.com/ads/web.git.",
            min_length=1,
            max_length=1024,
            pattern=r"^[^-\r\n][^\r\n]*$",
        ),
    ]
    branch: Annotated[
        str,
        Meta(
            description="Protected branch, such as release; main by default.",
            pattern="^[A-Za-z0-9_][-A-Za-z0-9_./]*$",
            max_length=255,
        ),
    ] = "main"
    reviewers: Annotated[
        int,
        Meta(description="Number of reviewers required in addition to the authors; 1 by default.", ge=0, le=16),
    ] = 1
    since: Annotated[
        str,
        Meta(
            description="Full id of the commit up to which the history needs no reviews, such as the head of the "
            "branch when reviews began. Without it all commits below the first deployed one need them, too.",
            pattern="^([0-9a-f]{40}|[0-9a-f]{64})?$",
            max_length=64,
        ),
    ] = ""
    builders: Annotated[
        dict[str, _Key],
        Meta(
            description="Builders that may publish, with their public keys, such as jenkins: ssh-ed25519 AAAA….",
            max_length=64,
        ),
    ]
    people: Annotated[
        dict[str, _Key],
        Meta(
            description="Reviewers by email address in git, with their public keys, such as ann@example.com: "
            "ssh-ed25519 AAAA….",
            max_length=1024,
        ),
    ] = {}

    def field_errors(self, path: tuple[str, ...]) -> Iterator[FieldError]:
        """Each key must be used once: a key shared by two names would let one signature count as two."""
        # Imported late: loading the kinds must not load the cryptography library, which is slow.
        from pincompute.api.attestation import SUPPORTED_KEY_TYPES, public_key_error

        if error := repository_error(self.repository):
            yield FieldError((*path, "repository"), error, next="such as https://git.example.com/ads/web.git")
        if not self.builders:
            yield FieldError((*path, "builders"), "at least one builder is required", next="builders: {NAME: KEY}")
        first: dict[str, str] = {}
        for field, keys in (("builders", self.builders), ("people", self.people)):
            for name, key in keys.items():
                key_path = (*path, field, name)
                if reason := public_key_error(key):
                    yield FieldError(
                        key_path,
                        f"invalid public key of {name}: {reason}",
                        f"a public key is {SUPPORTED_KEY_TYPES}, as in the file id_ed25519.pub",
                    )
                    continue
                key_data = key.split()[1]
                if key_data in first:
                    what = f"{name} and {first[key_data]} have the same key"
                    yield FieldError(key_path, what, next="use a different key for each")
                first.setdefault(key_data, name)
        if len(self.people) < self.reviewers:
            what = f"{self.reviewers} reviewers are required, but only {len(self.people)} are listed"
            yield FieldError((*path, "people"), what, next="people: {ADDRESS: KEY}")
