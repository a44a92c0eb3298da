"""Tokens for IAM roles: closed unless the project opens the role, and in the main container of every kind."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from pincompute.api.documents import read_document
from pincompute.api.kinds import WORKLOADS
from pincompute.api.project import Project
from pincompute.api.validation import parse_resource
from pincompute.base.problem import Refused
from pincompute.kube.resource import Object
from pincompute.planning.snapshot import Snapshot
from pincompute.planning.views.plan_preview import LOCAL_CLUSTER, as_first_generation, converged_plan

NOW = datetime(2026, 1, 31, 12, tzinfo=UTC)
SPECS: dict[str, Object] = {
    "PinterestService": {"port": 8080},
    "PinterestStatefulSet": {"port": 8080},
    "PinterestDaemon": {},
    "PinterestCronJob": {"schedule": "30 3 1 1 *"},
    "PinterestTrainingJob": {"command": ["true"]},
    "PinterestJobSet": {"tasks": 2},
}


def opened_project(**roles: str) -> Project:
    spec = {"owner": "team-ads", "quota": {"on-demand": {}, "infrastructure": {}}, "iamRoles": roles}
    content = {"apiVersion": "pinterest.com/v1", "kind": "Project", "metadata": {"name": "ads"}, "spec": spec}
    parsed = parse_resource(read_document(msgspec.json.encode(content).decode()), "")
    assert isinstance(parsed, Project)
    return parsed


def planned_workload(kind: str, project: Project | None, **spec: Any) -> Any:
    content = {
        "apiVersion": "pinterest.com/v1",
        "kind": kind,
        "metadata": {"name": "web", "project": "ads"},
        "spec": {"image": "web:1", **SPECS[kind], "iamRole": "ads-reader", **spec},
    }
    owner = parse_resource(read_document(msgspec.json.encode(content).decode()), "ads")
    return converged_plan(Snapshot(as_first_generation(owner), (), (), LOCAL_CLUSTER, NOW, project))


def pods_in(value: Any) -> list[Object]:
    """Every pod spec, however deep."""
    if isinstance(value, list):
        return [pod for each in value for pod in pods_in(each)]
    if not isinstance(value, dict):
        return []
    own = [value] if "containers" in value and "serviceAccountName" in value else []
    return [*own, *(pod for each in value.values() for pod in pods_in(each))]


def test_every_kind_is_tried() -> None:
    assert SPECS.keys() == WORKLOADS.keys()


@pytest.mark.parametrize("kind", SPECS)
def test_main_container_has_a_token_for_the_audience_of_the_project(kind: str) -> None:
    template = {"spec": {"containers": [{"name": "helper", "image": "helper:1"}]}}
    plan = planned_workload(
        kind, opened_project(**{"ads-reader": "sts.example.com", "other": "other.example.com"}), template=template
    )
    assert plan.problems == ()
    pods = pods_in(list(plan.wanted))
    assert pods
    for pod in pods:
        (volume,) = [each for each in pod["volumes"] if each["name"] == "iam-token"]
        (source,) = volume["projected"]["sources"]
        assert source == {
            "serviceAccountToken": {"audience": "sts.example.com", "expirationSeconds": 3600, "path": "token"}
        }
        with_token = [
            each for each in pod["containers"] if any(m["name"] == "iam-token" for m in each.get("volumeMounts", ()))
        ]
        (main,) = with_token
        assert main["name"] != "helper"
        variables = {each["name"]: each.get("value") for each in main["env"]}
        assert (variables["PIN_IAM_ROLE"], variables["PIN_IAM_TOKEN_FILE"]) == ("ads-reader", "/run/iam/token")
        # No token for the cluster itself comes with it.
        assert pod["automountServiceAccountToken"] is False


@pytest.mark.parametrize("kind", SPECS)
def test_role_that_the_project_has_not_opened_is_refused(kind: str) -> None:
    for project in (None, opened_project(), opened_project(other="sts.example.com")):
        (problem,) = planned_workload(kind, project).problems
        assert (problem.reason.code, problem.where.field) == ("Forbidden", "spec.iamRole")
        assert problem.what == "iamRole ads-reader is not open to project ads"
        assert problem.next == "remove iamRole, or ask the infrastructure team for spec.iamRoles in project ads"


def test_workload_without_a_role_has_no_token() -> None:
    plan = planned_workload("PinterestService", opened_project(**{"ads-reader": "sts.example.com"}), iamRole="")
    assert "iam" not in msgspec.json.encode(plan.wanted).decode()


@pytest.mark.parametrize(
    "audience",
    [
        "pincompute-desk",
        "https://kubernetes.default.svc.cluster.local",
        "kubernetes.default.svc",
        "a\nb",
        "",
        "a" * 257,
    ],
)
def test_audiences_of_the_cluster_and_the_desk_are_refused(audience: str) -> None:
    with pytest.raises(Refused) as refused:
        opened_project(**{"ads-reader": audience})
    assert refused.value.problems[0].where.field.startswith("spec.iamRoles")
