"""Who may do what at the desk: the whole table against a model that knows nothing of the code."""

from __future__ import annotations

import msgspec

from allowed import PROJECTS, TABLE, VERBS, allowed, person, program, rank
from pincompute.api.admission import admit
from pincompute.api.documents import read_one
from pincompute.api.membership import Role
from pincompute.api.project import Project
from pincompute.base.reasons import NOT_ALLOWED, PROJECT_UNKNOWN
from pincompute.objects.content import Object
from pincompute.planning.rights import Verb, may, role


def project(name: str, members: Object) -> Project:
    review = "open" if name == "open" else "landed"
    spec = {"owner": "team-ads", "contact": "#ads", "members": members, "quota": {"on-demand": {}}, "review": review}
    content = {"apiVersion": "pinterest.com/v1", "kind": "Project", "metadata": {"name": name}, "spec": spec}
    found = admit(read_one(msgspec.json.encode(content).decode()), "")
    assert isinstance(found, Project)
    return found


MADE = {name: project(name, members) for name, members in PROJECTS.items() if members is not None}


def test_the_whole_table() -> None:
    assert set(VERBS) == set(Verb)
    assert len(TABLE) > 3_000
    for asked in TABLE:
        problem = may(asked.who, Verb(asked.verb), asked.project, MADE.get(asked.project), asked.kind)
        assert (problem is None) == allowed(asked), asked


def test_who_may_not_look_learns_nothing() -> None:
    """Not even whether it is there: the same words, whatever is asked and of what."""
    for asked in TABLE:
        if asked.who.administers or rank(asked.who, asked.project):
            continue
        problem = may(asked.who, Verb(asked.verb), asked.project, MADE.get(asked.project), asked.kind)
        assert problem
        assert problem.reason is PROJECT_UNKNOWN
        assert problem == may(asked.who, Verb(asked.verb), asked.project, None)


def test_whoever_has_two_roles_has_the_higher() -> None:
    assert role(person("vera", "crew"), MADE["open"]) is Role.DEPLOYER
    assert role(person("eve"), MADE["open"]) is None
    assert role(program("open/ci"), MADE["open"]) is Role.DEPLOYER
    # A name alone is nobody: it is of the project that names it.
    assert role(program("landed/ci"), MADE["open"]) is None


def test_a_refusal_says_which_rule_and_whom_to_ask() -> None:
    problem = may(person("vera"), Verb.DEPLOY, "open", MADE["open"])
    assert problem
    assert problem.reason is NOT_ALLOWED
    assert problem.text() == (
        "open: vera may not bring work into the project open: "
        "that takes a deployer, and they are a viewer  [NotAllowed]\n"
        "  an owner: olga, group leads, program chief\n"
        "  a deployer: dan, group crew, program ci, program tools/bot\n"
        "  next: ask team-ads (#ads), whose project it is"
    )


def test_what_is_in_no_project_is_for_administrators() -> None:
    problem = may(person("olga"), Verb.ADMINISTER, "", None)
    assert problem
    assert problem.next == "ask the infrastructure team"
    assert may(person("root", administers=True), Verb.ADMINISTER, "", None) is None
