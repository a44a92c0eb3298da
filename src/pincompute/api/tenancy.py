"""A project as a person asks for it: whose it is, who may what, what it may use and does, and what waits."""

from __future__ import annotations

from pincompute.api.membership import Review, Role
from pincompute.api.wire import Wire


class Holder(Wire, frozen=True, omit_defaults=False):
    """One workload, and how much it holds."""

    name: str
    kind: str
    holds: str


class Held(Wire, frozen=True, omit_defaults=False):
    """One thing that a project may use, as people write it."""

    thing: str
    used: str
    limit: str = ""
    """Empty where it is not bounded."""
    left: str = ""
    share: float | None = None
    """Of the limit, how much is used; more than 1 where that is over."""
    most: list[Holder] = []
    """Who holds the most, the largest first."""


class TierUse(Wire, frozen=True, omit_defaults=False):
    tier: str
    held: list[Held] = []


class Unreviewed(Wire, frozen=True, omit_defaults=False):
    """Glass that is broken now."""

    name: str
    kind: str
    until: str
    by: str
    because: str
    overdue: bool


class Waiting(Wire, frozen=True, omit_defaults=False):
    """What has not come to its goal."""

    name: str
    kind: str
    reason: str
    message: str
    failed: bool


class Kept(Wire, frozen=True, omit_defaults=False):
    """A policy that its work must keep."""

    name: str
    message: str
    kinds: list[str] = []
    """Of which it is asked; of all where none is named."""
    rule: str = ""
    of_platform: bool = False
    """And not the project's own."""
    slips: list[str] = []
    """What is wrong with it: it cannot judge, and so lets nothing in."""


class OnItsWay(Wire, frozen=True, omit_defaults=False):
    """What was accepted, and is not in the cluster yet."""

    id: str
    name: str
    kind: str
    verb: str
    at: str
    who: str
    attempts: int = 0
    waits: str = ""
    """What kept it from there the last time."""


class Tenancy(Wire, frozen=True, omit_defaults=False):
    project: str
    owner: str = ""
    contact: str = ""
    cost_centre: str = ""
    review: Review = Review.LANDED
    members: dict[Role, list[str]] = {}
    builders: list[str] = []
    """Who may publish for it."""
    policies: list[Kept] = []
    quota: list[TierUse] = []
    kinds: dict[str, int] = {}
    """How many workloads of each there are."""
    glass: list[Unreviewed] = []
    waiting: list[Waiting] = []
    on_their_way: list[OnItsWay] = []
    """In the order in which they were accepted; the desk alone knows."""


class Tenant(Wire, frozen=True, omit_defaults=False):
    """One project of many."""

    project: str
    owner: str = ""
    contact: str = ""
    review: Review = Review.LANDED
    role: Role | None = None
    """Of whoever asks; nothing where they administer the platform and are no member."""
