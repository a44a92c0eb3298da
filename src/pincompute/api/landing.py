"""What a project means by reviewed and landed: in which repository, on which branch, and whose word counts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

from msgspec import Meta

from pincompute.api.noun import Fault
from pincompute.api.wire import Strict

_Key = Annotated[str, Meta(min_length=1, max_length=1024)]


class Landing(Strict, frozen=True, kw_only=True):
    """What is deployed must have come this way."""

    repository: Annotated[
        str,
        Meta(
            description="Where the desk reads what landed, such as https://git.example.com/ads/web.git.",
            min_length=1,
            max_length=1024,
            pattern="^[^-]",
        ),
    ]
    branch: Annotated[
        str,
        Meta(
            description="The protected branch, such as release; main by default.",
            pattern="^[A-Za-z0-9_][-A-Za-z0-9_./]*$",
            max_length=255,
        ),
    ] = "main"
    reviewers: Annotated[
        int,
        Meta(description="How many people other than its authors must have reviewed it; 1 by default.", ge=0, le=16),
    ] = 1
    builders: Annotated[
        dict[str, _Key],
        Meta(
            description="Who may publish, by the key they sign with, such as jenkins: ssh-ed25519 AAAA….", max_length=64
        ),
    ]
    people: Annotated[
        dict[str, _Key],
        Meta(
            description="Who may review: their address in git and their key, such as ann@example.com: "
            "ssh-ed25519 AAAA….",
            max_length=1024,
        ),
    ] = {}

    def faults(self, path: tuple[str, ...]) -> Iterator[Fault]:
        """One key is one person's, and no builder's as well: else one signature would count as two."""
        # Whoever knows the kinds need not load what knows keys.
        from pincompute.api.attestation import KEYS, key_fault

        if not self.builders:
            yield Fault((*path, "builders"), "nobody may publish", next="builders: {NAME: KEY}")
        first: dict[str, str] = {}
        for sort, keys in (("builders", self.builders), ("people", self.people)):
            for name, key in keys.items():
                where = (*path, sort, name)
                if why := key_fault(key):
                    yield Fault(
                        where, f"this cannot be a key of {name}: {why}", f"such as the file id_ed25519.pub: {KEYS}"
                    )
                    continue
                bare = key.split()[1]
                if bare in first:
                    yield Fault(where, f"the key of {name} is that of {first[bare]}", next="one key each")
                first.setdefault(bare, name)
        if len(self.people) < self.reviewers:
            what = f"{self.reviewers} must review, and {len(self.people)} could"
            yield Fault((*path, "people"), what, next="people: {ADDRESS: KEY}")
