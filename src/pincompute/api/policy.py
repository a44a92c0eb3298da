"""A policy: a rule that all work of a project, or of the platform, must keep."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Annotated

from msgspec import Meta

from pincompute.api.noun import NAME_PATTERN, Fault, Path
from pincompute.api.wire import Strict
from pincompute.objects.cel.syntax import NotRead


class Policy(Strict, frozen=True, kw_only=True):
    """What must be so, in CEL, and what is said to whom it is not so for."""

    name: Annotated[
        str, Meta(description="What it is called, such as two-copies.", pattern=NAME_PATTERN, max_length=50)
    ]
    rule: Annotated[
        str,
        Meta(
            description="What must be true, in CEL, such as workload.spec.replicas >= 2.", min_length=1, max_length=2000
        ),
    ]
    message: Annotated[
        str,
        Meta(description="It in words, such as: a service has two copies at least.", min_length=1, max_length=512),
    ]
    kinds: Annotated[
        list[Annotated[str, Meta(max_length=50)]],
        Meta(description="Of which kinds it is asked, such as [PinterestService]; of all by default.", max_length=16),
    ] = []


Listed = Annotated[
    list[Policy],
    Meta(
        description="What all its work must keep, such as {name: small, rule: requests.cpu <= 8, message: 8 at most}.",
        max_length=64,
    ),
]


def policy_faults(policies: Sequence[Policy], path: Path) -> Iterator[Fault]:
    """What is wrong with them; a rule is read only where there is what reads it, which is at every desk."""
    names: set[str] = set()
    for index, policy in enumerate(policies):
        if policy.name in names:
            yield Fault((*path, index, "name"), f"two policies are called '{policy.name}'")
        names.add(policy.name)
        with suppress(ModuleNotFoundError):
            yield from _rule_faults(policy, (*path, index))


def _rule_faults(policy: Policy, path: Path) -> Iterator[Fault]:
    # What it may ask of are the kinds, of which a project is one.
    from pincompute.api.kinds import WORKLOADS
    from pincompute.api.policy_view import misread, rule_of
    from pincompute.api.shape import perhaps

    unknown = [each for each in policy.kinds if each not in WORKLOADS]
    for each in unknown:
        note = f"the kinds are {', '.join(WORKLOADS)}"
        yield Fault((*path, "kinds"), f"there is no kind '{each}' of workload", note, perhaps(each, WORKLOADS))
    if unknown:
        return
    try:
        rule = rule_of(policy)
    except NotRead as error:
        yield Fault((*path, "rule"), _placed(str(error), error.column))
        return
    for each in misread(rule, policy.kinds or list(WORKLOADS)):
        yield Fault((*path, "rule"), _placed(each.what, each.column), next=each.next)


def _placed(what: str, column: int) -> str:
    return f"at character {column} of the rule: {what}" if column else f"of the rule: {what}"
