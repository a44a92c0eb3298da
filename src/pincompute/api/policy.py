"""Policies: CEL rules that workloads of a project, or of the platform, must satisfy."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from pincompute.api.custom_resource import NAME_PATTERN
from pincompute.api.structs import StrictStruct


class Policy(StrictStruct, frozen=True, kw_only=True):
    """A CEL rule and the message for workloads that violate it."""

    name: Annotated[str, Meta(description="Policy name, such as two-replicas.", pattern=NAME_PATTERN, max_length=50)]
    rule: Annotated[
        str,
        Meta(
            description="CEL expression that must be true, such as workload.spec.replicas >= 2.",
            min_length=1,
            max_length=2000,
        ),
    ]
    message: Annotated[
        str,
        Meta(
            description="Message for a violation, such as: a service needs at least two replicas.",
            min_length=1,
            max_length=512,
        ),
    ]
    kinds: Annotated[
        list[Annotated[str, Meta(max_length=50)]],
        Meta(
            description="Kinds to which the policy applies, such as [PinterestService]; all by default.", max_length=16
        ),
    ] = []


PolicyList = Annotated[
    list[Policy],
    Meta(
        description="Policies for the project's workloads, such as {name: small, rule: requests.cpu <= 8, message: "
        "8 at most}.",
        max_length=64,
    ),
]
