"""Who may do what, thought out once more and by itself: the table that the code is compared with."""

from __future__ import annotations

from itertools import product
from typing import NamedTuple

from pincompute.api.identity import Identity, Sort
from pincompute.api.kinds import WORKLOADS

MEMBERS: dict[str, dict[str, list[str]]] = {
    "owner": {"people": ["olga"], "groups": ["leads"], "programs": ["chief"]},
    "deployer": {"people": ["dan"], "groups": ["crew"], "programs": ["ci", "tools/bot"]},
    "viewer": {"people": ["vera"], "groups": ["all"], "programs": ["tools/eye"]},
}
PROJECTS: dict[str, dict[str, dict[str, list[str]]] | None] = {
    "open": MEMBERS,
    "landed": MEMBERS,
    "lonely": {},
    "nowhere": None,
}
KINDS = ("", *WORKLOADS)
VERBS = (
    "look at",
    "bring work into",
    "change what runs in",
    "delete what runs in",
    "go into what runs in",
    "go past the reviews of",
    "administer",
)


def person(name: str, *groups: str, administers: bool = False) -> Identity:
    return Identity(name, Sort.PERSON, frozenset(groups), administers)


def program(name: str) -> Identity:
    return Identity(name, Sort.PROGRAM)


IDENTITIES = (
    person("root", administers=True),
    *(person(name) for name in ("olga", "dan", "vera", "eve", "crew", "leads", "tools/bot", "ci", "landed/ci")),
    person("gus", "leads"), person("gia", "crew"), person("gil", "all"), person("vera", "crew"), person("olga", "all"),
    person("dan", "olga", "vera"), person("eve", "others"),
    *(program(f"{project}/ci") for project in (*PROJECTS, "tools")),
    *(program(name) for name in ("tools/bot", "tools/eye", "open/chief", "landed/chief", "tools/dan", "ci", "dan")),
)  # fmt: skip
"""Those who have a role, by each way, and those who only look as if."""


class Asked(NamedTuple):
    who: Identity
    verb: str
    kind: str
    project: str


TABLE = tuple(map(Asked._make, product(IDENTITIES, VERBS, KINDS, PROJECTS)))


def rank(who: Identity, project: str) -> int:
    """3 for owners, 2 for deployers, 1 for viewers."""
    members = PROJECTS[project] or {}
    for number, said in zip((3, 2, 1), members.values(), strict=False):
        if who.sort is Sort.PROGRAM:
            home, _, name = who.name.partition("/")
            if name and (who.name in said["programs"] or (home == project and name in said["programs"])):
                return number
        elif who.name in said["people"] or who.groups & set(said["groups"]):
            return number
    return 0


def allowed(asked: Asked) -> bool:
    if asked.who.administers:
        return True
    if asked.verb == "administer" or (asked.kind == "PinterestDaemon" and asked.verb != "look at"):
        return False
    least = {"look at": 1, "go past the reviews of": 3, "go into what runs in": 2 if asked.project == "open" else 3}
    return rank(asked.who, asked.project) >= least.get(asked.verb, 2)
