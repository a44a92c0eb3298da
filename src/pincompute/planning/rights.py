"""Who may do what: one table for all that is asked of the desk. The rights that a project's members have in its
namespace are given by the same roles: planning/project.py. Pure."""

from __future__ import annotations

from enum import StrEnum

from pincompute.api.daemon import PinterestDaemon
from pincompute.api.identity import Identity, Sort
from pincompute.api.membership import Review, Role
from pincompute.api.project import Project, Who
from pincompute.base.problem import Problem, Where
from pincompute.base.reasons import NOT_ALLOWED, PROJECT_UNKNOWN


class Verb(StrEnum):
    """What somebody wants, in the words of a refusal."""

    LOOK = "look at"
    DEPLOY = "bring work into"
    CHANGE = "change what runs in"
    DELETE = "delete what runs in"
    ENTER = "go into what runs in"
    BREAK_GLASS = "go past the reviews of"
    ADMINISTER = "administer"
    """What is in no project: runtimes, and whatever shows every project."""


NEEDED = {
    Verb.LOOK: Role.VIEWER,
    Verb.DEPLOY: Role.DEPLOYER,
    Verb.CHANGE: Role.DEPLOYER,
    Verb.DELETE: Role.DEPLOYER,
    Verb.ENTER: Role.DEPLOYER,
    Verb.BREAK_GLASS: Role.OWNER,
}
"""The least role that may; whatever stands in no row is for the platform's administrators."""

_ROLES = tuple(Role)


def role(who: Identity, project: Project) -> Role | None:
    """The highest that they have."""
    members = project.spec.members
    return next((each for each in _ROLES if _among(who, members.of(each), project.metadata.name)), None)


def may(who: Identity, verb: Verb, name: str, project: Project | None, kind: str = "") -> Problem | None:
    """Why not. Of what somebody may not even look at they do not learn whether it is there."""
    if who.administers:
        return None
    has = role(who, project) if project else None
    if verb is Verb.ADMINISTER and not name:
        return _administrators(who, "this is for those who administer the platform")
    if project is None or has is None:
        return unseen(name)
    if verb is not Verb.LOOK and kind == PinterestDaemon.__name__:
        return _administrators(who, f"daemons run on every node: they are for those who administer it, also in {name}")
    needed = _needed(verb, project)
    if needed is None:
        return _administrators(who, f"only those who administer the platform may {verb} a project such as {name}")
    return None if _ROLES.index(has) <= _ROLES.index(needed) else _too_little(who, verb, project, has, needed)


def _needed(verb: Verb, project: Project) -> Role | None:
    if verb is Verb.ENTER and project.spec.review is Review.LANDED:
        # Nobody has reviewed what is typed there.
        return Role.OWNER
    return NEEDED.get(verb)


def unseen(name: str) -> Problem:
    """The same words, whichever it is."""
    what = f"there is no project '{name}', or you may not look at it"
    return Problem(PROJECT_UNKNOWN, what, next="pin whoami, which lists yours")


def _among(who: Identity, those: Who | None, project: str) -> bool:
    if those is None:
        return False
    if who.sort is Sort.PROGRAM:
        return who.name in those.programs_of(project)
    return who.name in those.people or not who.groups.isdisjoint(those.groups)


def _administrators(who: Identity, what: str) -> Problem:
    return Problem(NOT_ALLOWED, what, note=f"you are {who}", next="ask the infrastructure team")


def _too_little(who: Identity, verb: Verb, project: Project, has: Role, needed: Role) -> Problem:
    name, spec = project.metadata.name, project.spec
    what = f"{who} may not {verb} the project {name}: that takes {_article(needed)}, and they are {_article(has)}"
    note = "\n".join(
        f"{_article(each)}: {', '.join(found)}"
        for each in _ROLES[: _ROLES.index(needed) + 1]
        if (found := named(spec.members.of(each)))
    )
    return Problem(NOT_ALLOWED, what, Where(object=name), note, f"ask {spec.whom}, whose project it is")


def named(who: Who | None) -> list[str]:
    """Those who have a role, as people read them."""
    if who is None:
        return []
    programs = (f"{Sort.PROGRAM} {name}" for name in who.programs)
    return [*who.people, *(f"group {name}" for name in who.groups), *programs]


def _article(role: Role) -> str:
    return f"an {role}" if role is Role.OWNER else f"a {role}"
