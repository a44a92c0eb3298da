"""Edits of a project's members by the commands."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from pincompute.api.membership import ProjectRole
from pincompute.api.project import Project, ProjectSpec
from pincompute.api.structs import Metadata
from pincompute.base.problem import Refused
from pincompute.planning.membership import Member, add_member, remove_member

EMPTY = Project(metadata=Metadata(name="ads"), spec=ProjectSpec(owner="team-ads"))
OLGA = Member.parse("olga")
MEMBERS = st.sampled_from([Member.parse(text) for text in ("olga", "dan", "group:crew", "program:ci", "user:group:x")])
ROLES = st.sampled_from(list(ProjectRole))


def roles_of(project: Project, member: Member) -> list[ProjectRole]:
    members = project.spec.members
    holders = {role: members.holders_of(role) for role in ProjectRole}
    return [role for role, each in holders.items() if each and member.name in getattr(each, member.field)]


def test_parses_members() -> None:
    assert [Member.parse(text) for text in ("ann", "user:ann", "group:ads", "program:build/ci", "ann:x@b.c")] == [
        ("people", "ann"), ("people", "ann"), ("groups", "ads"), ("programs", "build/ci"), ("people", "ann:x@b.c"),
    ]  # fmt: skip
    for text in ("", " ", "group:", "program: "):
        with pytest.raises(Refused, match="is no member"):
            Member.parse(text)


@given(st.lists(st.tuples(MEMBERS, ROLES), min_size=1))
def test_member_has_the_last_role_only(added: list[tuple[Member, ProjectRole]]) -> None:
    project = add_member(EMPTY, Member.parse("last"), ProjectRole.OWNER)
    for member, role in added:
        project = add_member(project, member, role)
    for member, role in dict(added).items():
        assert roles_of(project, member) == [role]
    assert list(project.spec.field_errors("ads"))[1:] == []


@given(st.lists(st.tuples(MEMBERS, ROLES), min_size=1))
def test_removed_member_has_no_role_and_others_keep_theirs(added: list[tuple[Member, ProjectRole]]) -> None:
    project = add_member(EMPTY, Member.parse("last"), ProjectRole.OWNER)
    for member, role in added:
        project = add_member(project, member, role)
    removed = remove_member(project, added[0][0])
    assert roles_of(removed, added[0][0]) == []
    assert all(roles_of(removed, each) == roles_of(project, each) for each, _ in added if each != added[0][0])


def test_last_owner_and_unknown_members_are_not_removed() -> None:
    project = add_member(EMPTY, OLGA, ProjectRole.OWNER)
    with pytest.raises(Refused) as refused:
        remove_member(project, OLGA)
    assert refused.value.problems[0].next == "pin project add-member ads USER --role owner"
    with pytest.raises(Refused) as refused:
        remove_member(project, Member.parse("group:crew"))
    assert refused.value.problems[0].message() == "group:crew is no member of project ads: members: olga"
    shared = add_member(project, Member.parse("group:leads"), ProjectRole.OWNER)
    assert roles_of(remove_member(shared, OLGA), OLGA) == []


def test_last_owner_keeps_the_role_when_given_a_lesser_one() -> None:
    project = add_member(EMPTY, OLGA, ProjectRole.OWNER)
    with pytest.raises(Refused):
        add_member(project, OLGA, ProjectRole.VIEWER)
