"""Changes of a project: every field of the spec, for every role."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from pincompute.admission.authorization import Permission, authorize
from pincompute.admission.project_changes import (
    OWNER_FIELDS,
    check_project_change,
    check_project_empty,
    content_digest,
    merge_metadata,
    summarize_change,
)
from pincompute.api.identity import Identity, IdentityType
from pincompute.api.names import SUBMISSION_ANNOTATION
from pincompute.api.project import Project, ProjectSpec
from pincompute.api.structs import struct_fields
from pincompute.base.problem import Problem
from pincompute.kube.resource import Object

NOW = datetime(2026, 1, 31, 12, tzinfo=UTC)
MEMBERS: Object = {
    "owner": {"people": ["olga"], "groups": ["leads"], "programs": ["chief"]},
    "deployer": {"people": ["dan"]},
    "viewer": {"people": ["vera"]},
}
LANDING: Object = {"repository": "https://git.example.com/ads.git", "builders": {"jenkins": "ssh-ed25519 AAAA"}}
POLICY: Object = {"name": "two", "rule": "workload.spec.replicas >= 2", "message": "two replicas"}
SPEC: Object = {
    "owner": "team-ads",
    "review": "landed",
    "landing": LANDING,
    "members": MEMBERS,
    "quota": {"on-demand": {"pods": 3}},
    "policies": [POLICY],
}
ALLOWED: dict[str, Object] = {
    "owner": {"owner": "team-search"},
    "contact": {"contact": "#ads"},
    "costCentre": {"costCentre": "4711"},
    "description": {"description": "ranking"},
    "members": {"members": {**MEMBERS, "deployer": {"people": ["dan", "eve"]}}},
    "expires": {"expires": "2027-01-01"},
}
"""By field, what an owner may change."""
REFUSED: dict[str, list[Object]] = {
    "quota": [
        {"quota": {"on-demand": {"pods": 4}}},
        {"quota": {"on-demand": {}}},
        {"quota": {"on-demand": {"pods": 3}, "reserved": {}}},
        {"quota": {"on-demand": {"pods": 3}, "infrastructure": {}}},
        {"quota": {"on-demand": {"pods": 3}, "objects": 1_000_000}},
        # A quota is granted: giving some of it back is for administrators, too.
        {"quota": {"on-demand": {"pods": 2}}},
    ],
    "review": [{"review": "open"}],
    "landing": [
        {"landing": {**LANDING, "reviewers": 0}},
        {"landing": {**LANDING, "builders": {"olga": "ssh-ed25519 AAAB"}}},
        {"landing": {**LANDING, "people": {"olga": "ssh-ed25519 AAAB"}}},
        {"landing": None},
    ],
    "callers": [{"callers": ["search"]}],
    "hosts": [{"hosts": ["shop.example.com"]}],
    "placement": [{"placement": {"tolerations": ["dedicated"]}}],
    "ingress": [
        {"ingress": {"annotations": ["nginx.ingress.kubernetes.io/proxy-read-timeout"]}},
        {"ingress": {"issuers": {"letsencrypt": "ClusterIssuer"}}},
    ],
    "iamRoles": [{"iamRoles": {"admin": "sts.amazonaws.com"}}],
    "policies": [{"policies": []}, {"policies": [{**POLICY, "rule": "true"}]}],
}
"""By field, changes that are for administrators only."""


def ads_project(spec: Object = SPEC, **metadata: Any) -> Project:
    content = {"kind": "Project", "metadata": {"name": "ads", **metadata}, "spec": spec}
    return msgspec.convert(content, Project)


ADS = ads_project()
OWNERS = (
    Identity("olga"),
    Identity("gus", groups=frozenset({"leads"})),
    Identity("ads/chief", IdentityType.PROGRAM),
)
OTHERS = {"dan": "Forbidden", "vera": "Forbidden", "eve": "ProjectUnknown"}
CHANGES = [
    *((field, change, True) for field, change in ALLOWED.items()),
    *((field, change, False) for field, changes in REFUSED.items() for change in changes),
]


def decide(caller: Identity, after: Project, before: Project = ADS) -> list[Problem]:
    """As the desk does: the role first, and then the fields."""
    denied = authorize(caller, Permission.CONFIGURE, "ads", before, "Project")
    return [denied] if denied else check_project_change(caller, before, after, NOW)


def test_table_has_every_field() -> None:
    assert ALLOWED.keys() == set(OWNER_FIELDS)
    assert ALLOWED.keys() | REFUSED.keys() == {each.encode_name for each in struct_fields(ProjectSpec)}


@pytest.mark.parametrize(("field", "change", "allowed"), CHANGES)
def test_each_role_and_change(field: str, change: Object, *, allowed: bool) -> None:
    after = ads_project({**SPEC, **change})
    assert after != ADS
    assert decide(Identity("root", is_admin=True), after) == []
    for owner in OWNERS:
        problems = decide(owner, after)
        assert [(each.reason.code, each.where.field) for each in problems] == (
            [] if allowed else [("Forbidden", f"spec.{field}")]
        )
        for problem in problems:
            assert f"{owner} may not change spec.{field} of project ads" in problem.what
            assert problem.next.startswith("pin project document ads")
    for name, reason in OTHERS.items():
        assert [each.reason.code for each in decide(Identity(name), after)] == [reason]


def test_members_and_quota_together_are_refused_for_the_quota() -> None:
    both = ads_project({**SPEC, **ALLOWED["members"], "quota": {"on-demand": {"pods": 30}}})
    (problem,) = decide(Identity("olga"), both)
    assert problem.note.splitlines()[0] == "spec.quota.on-demand.pods: 3 -> 30"


@pytest.mark.parametrize("field", ["labels", "annotations"])
def test_owners_do_not_change_metadata(field: str) -> None:
    after = ads_project(**{field: {"team": "x"}})
    (problem,) = decide(Identity("olga"), after)
    assert problem.where.field == f"metadata.{field}"
    assert decide(Identity("root", is_admin=True), after) == []


def test_annotation_of_the_desk_is_no_change() -> None:
    forged = ads_project(annotations={SUBMISSION_ANNOTATION: "submission-99"})
    assert decide(Identity("olga"), forged) == []
    assert content_digest(forged) == content_digest(ADS)


def test_document_need_not_repeat_metadata_of_others() -> None:
    before = ads_project(annotations={"note": "1"}, labels={"team": "ads"})
    merged = merge_metadata(before, ADS)
    assert (merged.metadata.annotations, merged.metadata.labels) == ({"note": "1"}, {"team": "ads"})
    assert decide(Identity("olga"), merged, before) == []


@pytest.mark.parametrize(
    ("owners", "refused"),
    [
        ({"people": ["olga"]}, False),
        ({"groups": ["leads"]}, False),
        ({"programs": ["chief"]}, True),
        (None, True),
    ],
)
def test_last_owner_is_not_removed(owners: Object | None, *, refused: bool) -> None:
    after = ads_project({**SPEC, "members": {**MEMBERS, "owner": owners}})
    problems = decide(Identity("olga"), after)
    assert [each.next for each in problems] == (["pin project add-member ads USER --role owner"] if refused else [])
    assert decide(Identity("root", is_admin=True), after) == []


def test_expiry_in_the_past_is_refused_unless_it_is_unchanged() -> None:
    over = ads_project({**SPEC, "expires": "2026-01-01"})
    (problem,) = decide(Identity("root", is_admin=True), over)
    assert problem.where.field == "spec.expires"
    assert decide(Identity("olga"), ads_project({**SPEC, "expires": "2026-01-01", "contact": "#ads"}), over) == []


def test_digest_differs_for_an_opened_tier() -> None:
    opened = ads_project({**SPEC, "quota": {"on-demand": {"pods": 3}, "preemptible": {}}})
    assert content_digest(opened) != content_digest(ADS)


def test_summary_has_each_field_with_both_values_and_is_bounded() -> None:
    after = ads_project({**SPEC, "owner": "team-x", "contact": "#x"})
    assert summarize_change(ADS, after) == "spec.contact: none -> #x; spec.owner: team-ads -> team-x"
    assert (summarize_change(None, after), summarize_change(ADS, ADS)) == ("created", "unchanged")
    flood = ads_project({**SPEC, "hosts": [f"h{number}.example.com" for number in range(200)], "owner": "o" * 128})
    assert len(summarize_change(ADS, flood)) <= 1_000


def test_project_with_workloads_is_not_empty() -> None:
    problem = check_project_empty("ads", ["web", "api"])
    assert problem
    assert problem.what == "project ads has 2 workloads: api, web"
    assert problem.next == "pin delete api -p ads, and then the others"
    assert check_project_empty("ads", []) is None
