"""The expected permissions, computed independently of the code: tests compare the two."""

from __future__ import annotations

from itertools import product
from typing import NamedTuple

from pincompute.api.identity import Identity, IdentityType
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
    "view",
    "deploy to",
    "change workloads of",
    "delete workloads of",
    "exec into workloads of",
    "break glass in",
    "create and rotate secrets of",
    "grant and delete secrets of",
    "change the settings of",
    "administer",
)


def person(name: str, *groups: str, administers: bool = False) -> Identity:
    return Identity(name, IdentityType.PERSON, frozenset(groups), administers)


def program(name: str) -> Identity:
    return Identity(name, IdentityType.PROGRAM)


IDENTITIES = (
    person("root", administers=True),
    *(person(name) for name in ("olga", "dan", "vera", "eve", "crew", "leads", "tools/bot", "ci", "landed/ci")),
    person("gus", "leads"), person("gia", "crew"), person("gil", "all"), person("vera", "crew"), person("olga", "all"),
    person("dan", "olga", "vera"), person("eve", "others"),
    *(program(f"{project}/ci") for project in (*PROJECTS, "tools")),
    *(program(name) for name in ("tools/bot", "tools/eye", "open/chief", "landed/chief", "tools/dan", "ci", "dan")),
)  # fmt: skip
"""Identities with roles by name, group or program, and identities that only resemble them."""


class AccessCase(NamedTuple):
    caller: Identity
    verb: str
    kind: str
    project: str


ACCESS_TABLE = tuple(map(AccessCase._make, product(IDENTITIES, VERBS, KINDS, PROJECTS)))


def role_rank(who: Identity, project: str) -> int:
    """3 for owners, 2 for deployers, 1 for viewers, 0 without a role."""
    members = PROJECTS[project] or {}
    for number, said in zip((3, 2, 1), members.values(), strict=False):
        if who.type is IdentityType.PROGRAM:
            home, _, name = who.name.partition("/")
            if name and (who.name in said["programs"] or (home == project and name in said["programs"])):
                return number
        elif who.name in said["people"] or who.groups & set(said["groups"]):
            return number
    return 0


def expected_access(asked: AccessCase) -> bool:
    if asked.caller.is_admin:
        return True
    if asked.verb == "administer" or (asked.kind == "PinterestDaemon" and asked.verb != "view"):
        return False
    least = {
        "view": 1,
        "break glass in": 3,
        "grant and delete secrets of": 3,
        "change the settings of": 3,
        "exec into workloads of": 2 if asked.project == "open" else 3,
    }
    return role_rank(asked.caller, asked.project) >= least.get(asked.verb, 2)
