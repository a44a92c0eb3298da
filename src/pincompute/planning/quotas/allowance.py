"""Whether what is asked for fits into a project's quota; if not, the numbers, who holds them, and whom to ask."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from math import floor
from typing import NamedTuple

import msgspec

from pincompute.api.preview import Preview
from pincompute.api.project import Project, TierQuota
from pincompute.api.tenancy import Held, Holder
from pincompute.base.problem import Problem, Where
from pincompute.base.reasons import QUOTA_TOO_SMALL, TIER_CLOSED
from pincompute.objects.quantity import amount, binary, cores
from pincompute.planning.quotas.footprint import COUNTED, NOTHING, Footprint, Place, together, total

TOLD = 3
"""Workloads that are named as those which hold the most."""

_WORDS = {"cpu": "processors", "memory": "memory", "gpus": "GPUs", "pods": "pods", "bytes": "bytes of objects"}


Holdings = Mapping[tuple[str, str], Footprint]
"""What each workload of a tier holds, by kind and name."""


class Taking(NamedTuple):
    """A workload, and what it is to hold of its project's quota."""

    place: Place
    project: Project | None
    """Without one nothing is bounded."""
    wants: Footprint | None
    """Nothing where it asks for nothing."""


class Fit(NamedTuple):
    """Whether that fits."""

    refused: Problem | None = None
    room: tuple[str, ...] = ()
    """What is left of what is bounded."""


class Asked(NamedTuple):
    """What one workload wants, beside what is there."""

    name: str
    wants: Footprint
    has: Footprint
    """What it holds of the same tier already."""
    others: Footprint
    """What all other workloads of the tier hold together."""


class Short(NamedTuple):
    """One thing of which there is not enough."""

    thing: str
    limit: int
    taken: int
    wants: int

    def __str__(self) -> str:
        left = max(0, self.limit - self.taken)
        asked, taken, limit, rest = (_shown(self.thing, each) for each in (self.wants, self.taken, self.limit, left))
        return f"{_WORDS[self.thing]}: {asked} asked for, {limit} allowed, {taken} taken by others, {rest} left"


def fit(taking: Taking, held: Holdings, beside: Collection[Place] = ()) -> Fit:
    """By what its whole tier holds now; those of its set are told as such."""
    place, project, wants = taking
    if project is None or wants is None:
        return Fit()
    own = (place.kind, place.name)
    others = {each: holds for each, holds in held.items() if each != own}
    asked = Asked(place.name, wants, held.get(own, NOTHING), total(others.values()))
    if problem := closed(project, asked):
        return Fit(problem)
    left, found = tuple(room(project, asked)), short(project, asked)
    if not found:
        return Fit(room=left)
    thing = found[0].thing
    most = sorted(others.items(), key=lambda each: (-getattr(each[1], thing), each[0]))
    same = {(each.kind, each.name) for each in beside if each.project == place.project}
    named = [
        (f"{holder[1]}{' of this set' if holder in same else ''}", holds)
        for holder, holds in most
        if getattr(holds, thing)
    ]
    return Fit(_refusal(project, asked, found, named), left)


def fit_together(takings: Sequence[Taking | None], held: Mapping[tuple[str, str], Holdings]) -> list[Fit]:
    """Each beside those before it, as a set is decided; `held` is by project and tier. What is no workload takes
    nothing."""
    holds = {each: dict(known) for each, known in held.items()}
    taken: list[Place] = []
    found: list[Fit] = []
    for each in takings:
        if each is None:
            found.append(Fit())
            continue
        place, _, wants = each
        tier = holds.setdefault((place.project, wants.tier if wants else ""), {})
        found.append(fit(each, tier, taken))
        if wants is not None and found[-1].refused is None:
            own = (place.kind, place.name)
            # It has what it had until it is less.
            tier[own] = together((wants, tier.get(own, NOTHING)))
            taken.append(place)
    return found


def within(preview: Preview, fit: Fit, problems: Iterable[Problem] = ()) -> Preview:
    """A plan with what it takes of the quota, and with all that is in its way."""
    short = (fit.refused,) if fit.refused else ()
    refused = [*(each.json() for each in (*problems, *short)), *preview.refused]
    return msgspec.structs.replace(preview, room=list(fit.room), refused=refused)


def closed(project: Project, asked: Asked) -> Problem | None:
    """A tier that the quota does not name may not be used."""
    tier = asked.wants.tier
    if not tier or project.spec.quota.by_class().get(tier) is not None:
        return None
    named = [each for each, bounds in project.spec.quota.by_class().items() if bounds is not None]
    return Problem(
        TIER_CLOSED,
        f"the quota of {project.metadata.name} has nothing for {tier} work",
        Where(object=f"{project.metadata.name}/{asked.name}"),
        f"it names {' and '.join(named)}",
        f"write tier: {named[0]}, or ask {project.spec.whom}",
    )


def short(project: Project, asked: Asked) -> tuple[Short, ...]:
    """What it does not fit into. Who asks for less than they have is never refused, however much is taken."""
    bounds = project.spec.quota.by_class().get(asked.wants.tier)
    return tuple(_short(bounds, asked)) if bounds else ()


def room(project: Project, asked: Asked) -> list[str]:
    """Of each thing that is bounded: what it wants, and what would be left when it has that."""
    bounds, tier = project.spec.quota.by_class().get(asked.wants.tier), asked.wants.tier
    return [_room(tier, thing, limit, asked) for thing, limit in _limits(bounds)] if bounds else []


def use(bounds: TierQuota | None, holdings: Holdings) -> Iterator[Held]:
    """Of each thing that is bounded or held: how much of it, and who holds the most."""
    limits = dict(_limits(bounds)) if bounds else {}
    for thing in COUNTED:
        holders = sorted(holdings.items(), key=lambda each: (-getattr(each[1], thing), each[0]))
        used, limit = sum(getattr(each, thing) for _, each in holders), limits.get(thing)
        if limit is None and (not used or thing == "bytes"):
            continue
        yield Held(
            thing=_WORDS[thing],
            used=_shown(thing, used),
            limit="" if limit is None else _shown(thing, limit),
            left="" if limit is None else _shown(thing, max(0, limit - used)),
            share=None if not limit else used / limit,
            most=[
                Holder(name=name, kind=kind, holds=_shown(thing, getattr(each, thing)))
                for (kind, name), each in holders[:TOLD]
                if getattr(each, thing)
            ],
        )


def _room(tier: str, thing: str, limit: int, asked: Asked) -> str:
    wants, others = getattr(asked.wants, thing), getattr(asked.others, thing)
    said, left, all_ = (_shown(thing, each) for each in (wants, max(0, limit - others - wants), limit))
    return f"{tier} {_WORDS[thing]}: it takes {said}, and {left} of {all_} are left"


def _refusal(project: Project, asked: Asked, found: Sequence[Short], most: Sequence[tuple[str, Footprint]]) -> Problem:
    """`most` are those who hold the most of the first thing that is short, the largest first."""
    thing = found[0].thing
    held = ", ".join(f"{name} {_shown(thing, getattr(each, thing))}" for name, each in most[:TOLD])
    lines = [str(each) for each in found]
    if held:
        lines.append(f"most of the {_WORDS[thing]} are held by {held}")
    return Problem(
        QUOTA_TOO_SMALL,
        f"{asked.name} does not fit into what {project.metadata.name} may use for {asked.wants.tier} work",
        Where(object=f"{project.metadata.name}/{asked.name}"),
        "\n".join(lines),
        f"scale down or delete what is not needed, or ask {project.spec.whom} for a larger quota",
    )


def _short(bounds: TierQuota, asked: Asked) -> Iterator[Short]:
    for thing, limit in _limits(bounds):
        wants, has, others = (getattr(each, thing) for each in (asked.wants, asked.has, asked.others))
        if wants > has and others + wants > limit:
            yield Short(thing, limit, others, wants)


def _limits(bounds: TierQuota) -> Iterator[tuple[str, int]]:
    """What is not named is not bounded."""
    if bounds.cpu != "":
        yield "cpu", floor(amount(bounds.cpu) * 1000)
    for thing, bytes_ in (("memory", bounds.memory), ("bytes", bounds.bytes)):
        if bytes_ != "":
            yield thing, floor(amount(bytes_))
    for thing, bound in (("gpus", bounds.gpus), ("pods", bounds.pods)):
        if bound is not None:
            yield thing, bound


def _shown(thing: str, count: int) -> str:
    """As people write it."""
    if thing == "cpu":
        return cores(Fraction(count, 1000))
    return binary(Fraction(count)) if thing in {"memory", "bytes"} else str(count)
