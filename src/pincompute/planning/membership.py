"""Edits of a project's members, as commands make them: a member has one role, as each includes the lesser ones."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from msgspec.structs import replace

from pincompute.api.membership import ProjectRole
from pincompute.api.project import Members, Project, RoleHolders
from pincompute.base.problem import Problem, Refused, Where
from pincompute.base.reasons import FORBIDDEN, USAGE

_FIELDS = {"": "people", "user": "people", "group": "groups", "program": "programs"}
_PREFIXES = {"people": "", "groups": "group:", "programs": "program:"}


class Member(NamedTuple):
    """A holder of a role, and the list of the project that has it: people, groups or programs."""

    field: str
    name: str

    @classmethod
    def parse(cls, text: str) -> Member:
        """A user's name; a group or program with a prefix: `ann`, `group:ads`, `program:build/ci`."""
        prefix, colon, rest = text.partition(":")
        prefix, name = (prefix, rest) if colon and prefix in _FIELDS else ("", text)
        if not name.strip():
            raise Refused(Problem(USAGE, f"'{text}' is no member", next="USER, group:NAME or program:NAME"))
        return cls(_FIELDS[prefix], name)

    def __str__(self) -> str:
        return f"{_PREFIXES[self.field]}{self.name}"


def add_member(project: Project, member: Member, role: ProjectRole) -> Project:
    """The project with the member in this role, and in no other one; refused if it loses its last owner by that."""
    lists = {each: _without(project.spec.members.holders_of(each), member) for each in ProjectRole if each is not role}
    holders = project.spec.members.holders_of(role) or RoleHolders()
    names: list[str] = getattr(holders, member.field)
    added = holders if member.name in names else replace(holders, **{member.field: [*names, member.name]})
    return _require_managed(project, _with_members(project, {**lists, role: added}))


def remove_member(project: Project, member: Member) -> Project:
    """The project without the member; refused if it is unknown, or the last owner."""
    name, members = project.metadata.name, project.spec.members
    if member not in _members(members):
        what = f"{member} is no member of project {name}"
        known = ", ".join(map(str, _members(members))) or "none"
        raise Refused(Problem(USAGE, what, Where(object=f"project {name}"), f"members: {known}", f"pin project {name}"))
    without = {each: _without(members.holders_of(each), member) for each in ProjectRole}
    return _require_managed(project, _with_members(project, without))


def _require_managed(before: Project, after: Project) -> Project:
    if is_managed(before) and not is_managed(after):
        raise Refused(last_owner_problem(before.metadata.name))
    return after


def is_managed(project: Project) -> bool:
    """Whether a person or group owns the project. A program that is the only owner could lock all people out."""
    owners = project.spec.members.owner
    return owners is not None and bool(owners.people or owners.groups)


def last_owner_problem(name: str) -> Problem:
    what = f"project {name} would have no owner: its last one cannot be removed"
    next_ = f"pin project add-member {name} USER --role owner"
    return Problem(FORBIDDEN, what, Where(object=f"project {name}", field="spec.members.owner"), next=next_)


def _members(members: Members) -> list[Member]:
    return [each for role in ProjectRole for each in _holders(members.holders_of(role))]


def _holders(holders: RoleHolders | None) -> Iterator[Member]:
    return (Member(field, name) for field, _, name in (holders.entries() if holders else ()))


def _without(holders: RoleHolders | None, member: Member) -> RoleHolders | None:
    if holders is None:
        return None
    remaining = [each for each in getattr(holders, member.field) if each != member.name]
    without = replace(holders, **{member.field: remaining})
    return without if any(without.entries()) else None


def _with_members(project: Project, by_role: dict[ProjectRole, RoleHolders | None]) -> Project:
    members = Members(**{role.value: holders for role, holders in by_role.items()})
    return replace(project, spec=replace(project.spec, members=members))
