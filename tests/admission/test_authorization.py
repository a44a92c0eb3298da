"""The authorization table, compared in whole with an independent model of it."""

from __future__ import annotations

import msgspec

from authorization_table import ACCESS_TABLE, PROJECTS, VERBS, expected_access, person, program, role_rank
from pincompute.admission.authorization import Permission, authorize, highest_role
from pincompute.api.documents import read_document
from pincompute.api.membership import ProjectRole
from pincompute.api.project import Project
from pincompute.api.validation import parse_resource
from pincompute.base.reasons import FORBIDDEN, PROJECT_UNKNOWN
from pincompute.objects.content import Object


def project(name: str, members: Object) -> Project:
    review = "open" if name == "open" else "landed"
    spec = {"owner": "team-ads", "contact": "#ads", "members": members, "quota": {"on-demand": {}}, "review": review}
    content = {"apiVersion": "pinterest.com/v1", "kind": "Project", "metadata": {"name": name}, "spec": spec}
    parsed = parse_resource(read_document(msgspec.json.encode(content).decode()), "")
    assert isinstance(parsed, Project)
    return parsed


PARSED_PROJECTS = {name: project(name, members) for name, members in PROJECTS.items() if members is not None}


def test_every_case_matches_the_model() -> None:
    assert set(VERBS) == set(Permission)
    assert len(ACCESS_TABLE) > 3_000
    for case in ACCESS_TABLE:
        problem = authorize(
            case.caller, Permission(case.verb), case.project, PARSED_PROJECTS.get(case.project), case.kind
        )
        assert (problem is None) == expected_access(case), case


def test_hides_projects_that_the_caller_may_not_view() -> None:
    """The answer does not depend on the permission, nor on whether the project exists."""
    for case in ACCESS_TABLE:
        if case.caller.is_admin or role_rank(case.caller, case.project):
            continue
        problem = authorize(
            case.caller, Permission(case.verb), case.project, PARSED_PROJECTS.get(case.project), case.kind
        )
        assert problem
        assert problem.reason is PROJECT_UNKNOWN
        assert problem == authorize(case.caller, Permission(case.verb), case.project, None)


def test_highest_of_several_roles_counts() -> None:
    assert highest_role(person("vera", "crew"), PARSED_PROJECTS["open"]) is ProjectRole.DEPLOYER
    assert highest_role(person("eve"), PARSED_PROJECTS["open"]) is None
    assert highest_role(program("open/ci"), PARSED_PROJECTS["open"]) is ProjectRole.DEPLOYER
    # A program without a project belongs to the project that lists it.
    assert highest_role(program("landed/ci"), PARSED_PROJECTS["open"]) is None


def test_rejection_names_the_needed_role_its_holders_and_the_owner() -> None:
    problem = authorize(person("vera"), Permission.DEPLOY, "open", PARSED_PROJECTS["open"])
    assert problem
    assert problem.reason is FORBIDDEN
    assert problem.text() == (
        "open: vera may not deploy to project open: "
        "needs role deployer, has role viewer  [Forbidden]\n"
        "  owner: olga, group leads, program chief\n"
        "  deployer: dan, group crew, program ci, program tools/bot\n"
        "  next: ask team-ads (#ads), the owner of the project"
    )


def test_resources_outside_of_projects_are_for_administrators() -> None:
    problem = authorize(person("olga"), Permission.ADMINISTER, "", None)
    assert problem
    assert problem.next == "ask the infrastructure team"
    assert authorize(person("root", administers=True), Permission.ADMINISTER, "", None) is None
