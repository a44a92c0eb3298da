"""Objects of a project: role bindings, quotas, namespace, and the roles that the bindings refer to."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

from pincompute import engine
from pincompute.api.kinds import WORKLOADS
from pincompute.api.project import Project
from pincompute.objects.content import Object
from pincompute.planning.kinds.project import plan
from pincompute.planning.names import project_role
from pincompute.planning.snapshot import Cluster, Native, Snapshot

NAMESPACE: Object = {
    "kind": "Namespace",
    "metadata": {"name": "ads", "ownerReferences": [{"uid": "1", "controller": True}]},
}
MEMBERS = {"owner": {"people": ["ann"]}, "deployer": {"groups": ["ads"]}, "viewer": {"people": ["eve"]}}


def snapshot(**spec: Any) -> Snapshot:
    fields = {"owner": "team-ads", "quota": {"on-demand": {}}, **spec}
    document = {"kind": "Project", "metadata": {"name": "ads", "uid": "1", "generation": 1}, "spec": fields}
    return Snapshot(
        owner=msgspec.convert(document, Project),
        natives=(msgspec.convert(NAMESPACE, Native),),
        pods=(),
        cluster=Cluster(name="main", domain="localhost", port=80),
        now=datetime(2026, 1, 31, tzinfo=UTC),
    )


def wanted(kind: str, **spec: Any) -> dict[str, Object]:
    return {each["metadata"]["name"]: each for each in plan(snapshot(**spec)).wanted if each["kind"] == kind}


def bindings(**spec: Any) -> dict[str, set[str]]:
    objects = wanted("RoleBinding", **spec)
    return {name: {each["name"] for each in binding["subjects"]} for name, binding in objects.items()}


def hard(**quota: Any) -> dict[str, dict[str, str]]:
    return {name: each["spec"]["hard"] for name, each in wanted("ResourceQuota", quota=quota).items()}


def test_each_role_includes_those_below_it() -> None:
    assert bindings(members=MEMBERS) == {
        "owner": {"ann"},
        "deployer": {"ann", "ads"},
        "viewer": {"ann", "ads", "eve"},
    }


def test_submitter_role_is_bound_only_if_review_is_open() -> None:
    assert "submitter" not in bindings(members=MEMBERS, review="landed")
    assert bindings(members=MEMBERS, review="open")["submitter"] == {"ann", "ads"}
    assert bindings(members={"viewer": {"people": ["eve"]}}, review="open") == {"viewer": {"eve"}}


def test_no_role_bindings_without_members() -> None:
    assert bindings() == {}


def test_order_of_members_does_not_matter() -> None:
    one = plan(snapshot(members={"owner": {"people": ["ann", "ben"]}}, callers=["a", "b"]))
    other = plan(snapshot(members={"owner": {"people": ["ben", "ann"]}}, callers=["b", "a"]))
    assert one == other


def test_unlisted_tiers_have_a_quota_of_no_pods_and_unlimited_ones_have_none() -> None:
    none = {"pods": "0"}
    tiers = {name: limits for name, limits in hard(**{"on-demand": {}}).items() if name != "objects"}
    assert tiers == dict.fromkeys(("reserved", "preemptible", "infrastructure", "no-tier"), none)


def test_objects_that_share_the_cluster_are_counted_by_default() -> None:
    by_default, lowered = (hard(**{"on-demand": {}, "objects": objects})["objects"] for objects in (None, 0))
    assert by_default["count/services"] == "1000"
    assert by_default["count/secrets"] == by_default["count/configmaps"] == "10000"
    assert set(lowered.values()) == {"0"}
    assert lowered.keys() == by_default.keys()


def container_limits(**quota: Any) -> Object:
    (limit_range,) = wanted("LimitRange", quota={"on-demand": {}, **quota}).values()
    (limits,) = limit_range["spec"]["limits"]
    return limits


def test_limit_range_has_no_default_limit_of_cpu_and_memory() -> None:
    """A default limit of CPU would slow containers down; that of disk must not become their request."""
    limits = container_limits()
    assert limits["default"] == {"ephemeral-storage": "50Gi"}
    assert limits["defaultRequest"]["ephemeral-storage"] == "0"
    assert limits["max"] == {"ephemeral-storage": "200Gi"}


@pytest.mark.parametrize(("most", "default"), [("1Ti", "50Gi"), ("20Gi", "20Gi"), (1000, "1000")])
def test_default_disk_limit_is_not_above_the_maximum(most: int | str, default: str) -> None:
    limits = container_limits(ephemeralStorage=most)
    assert (limits["default"], limits["max"]) == (
        {"ephemeral-storage": default},
        {"ephemeral-storage": str(most)},
    )


def test_placement_is_written_to_the_namespace() -> None:
    placement = {"tolerations": ["b", "a", "b"], "runtimeClasses": ["gvisor"]}
    (namespace,) = wanted("Namespace", placement=placement).values()
    assert (
        namespace["metadata"]["annotations"].items()
        >= {
            "pinterest.com/tolerations": "a b",
            "pinterest.com/runtime-classes": "gvisor",
        }.items()
    )
    (closed,) = wanted("Namespace").values()
    assert not {"pinterest.com/tolerations", "pinterest.com/runtime-classes"} & closed["metadata"]["annotations"].keys()


def test_only_infrastructure_projects_allow_privileged_pods() -> None:
    for tier, level in (("on-demand", "restricted"), ("infrastructure", "privileged")):
        (namespace,) = wanted("Namespace", quota={tier: {"pods": 1}}).values()
        assert namespace["metadata"]["labels"]["pod-security.kubernetes.io/enforce"] == level


def test_zero_is_a_limit() -> None:
    assert hard(reserved={"gpus": 0, "cpu": 0, "memory": "0"})["reserved"] == {
        "requests.nvidia.com/gpu": "0",
        "requests.cpu": "0",
        "requests.memory": "0",
    }


def test_each_pod_is_counted_by_at_most_one_quota() -> None:
    """The quota for pods without a tier matches all that no other quota matches."""
    objects = wanted("ResourceQuota", quota={"reserved": {"cpu": 1}})
    of_pods = {name: each for name, each in objects.items() if name != "objects"}
    scopes = {name: each["spec"]["scopeSelector"]["matchExpressions"][0] for name, each in of_pods.items()}
    tiers = [value for name, scope in scopes.items() if scope["operator"] == "In" for value in scope["values"]]
    assert scopes["no-tier"] == {"scopeName": "PriorityClass", "operator": "NotIn", "values": tiers}


@pytest.mark.parametrize("namespace", [{}, {"deletionTimestamp": "2026-01-30T00:00:00Z"}])
def test_no_permissions_in_a_namespace_of_another_owner(namespace: Object) -> None:
    existing = msgspec.convert({"kind": "Namespace", "metadata": {"name": "ads", **namespace}}, Native)
    planned = plan(snapshot(members=MEMBERS)._replace(natives=(existing,)))
    assert [each["kind"] for each in planned.wanted] == ["Namespace"]


def roles() -> dict[str, list[Object]]:
    """Rules of the ClusterRoles that the bindings refer to."""
    text = (Path(engine.__file__).parent / "manifests" / "roles.yaml").read_text()
    return {each["metadata"]["name"]: each["rules"] for each in yaml.safe_load_all(text)}


def allowed_resources(role: str, group: str, verb: str) -> set[str]:
    rules = [rule for rule in roles()[project_role(role)] if group in rule["apiGroups"] and verb in rule["verbs"]]
    return {resource for rule in rules for resource in rule["resources"]}


EXEC_RESOURCES = {"pods/exec", "pods/portforward"}


def test_roles_exist_without_wildcards() -> None:
    referenced = {each["roleRef"]["name"] for each in wanted("RoleBinding", members=MEMBERS, review="open").values()}
    assert referenced == roles().keys()
    assert "*" not in str(roles())


def test_no_role_creates_pods_or_role_bindings_or_lists_secrets() -> None:
    for role in ("viewer", "deployer", "owner", "submitter"):
        assert allowed_resources(role, "rbac.authorization.k8s.io", "create") == set()
        assert allowed_resources(role, "", "create") <= {"secrets", *EXEC_RESOURCES}
        assert allowed_resources(role, "apps", "create") == allowed_resources(role, "batch", "create") == set()
    assert "secrets" not in allowed_resources("viewer", "", "list") | allowed_resources("deployer", "", "list")


def test_only_owners_may_exec_if_review_is_required() -> None:
    """The submitter role exists only in projects that accept any workload."""
    assert [
        role
        for role in ("viewer", "deployer", "owner", "submitter")
        if allowed_resources(role, "", "create") & EXEC_RESOURCES
    ] == [
        "owner",
        "submitter",
    ]


@pytest.mark.parametrize("kind", WORKLOADS.values(), ids=lambda kind: kind.__name__)
def test_roles_cover_all_workload_kinds(kind: Any) -> None:
    assert kind.plural() in allowed_resources("viewer", "pinterest.com", "list")
    # Only the infrastructure team allowed_resources create daemons.
    assert (kind.plural() in allowed_resources("submitter", "pinterest.com", "create")) == (
        kind.__name__ != "PinterestDaemon"
    )
    assert (f"{kind.plural()}/scale" in allowed_resources("submitter", "pinterest.com", "patch")) == kind.SCALABLE


def snapshot_with_objects(**spec: Any) -> Snapshot:
    """Snapshot in which all objects of the project exist and its quotas are unused."""

    def stored(native: Object) -> Native:
        hard = native.get("spec", {}).get("hard", {})
        return msgspec.convert({**native, "status": {"hard": hard, "used": dict.fromkeys(hard, "0")}}, Native)

    first = snapshot(**spec)
    return first._replace(natives=(*first.natives, *map(stored, plan(first).wanted[1:])))


RULE = {"name": "two", "rule": "workload.spec.replicas >= 2", "message": "two at least", "kinds": ["PinterestService"]}


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        ({"rule": "workload.spec.replica >= 2"}, ("has no field 'replica'", "next: did you mean replicas?")),
        ({"rule": "workload.spec.replicas >="}, ("unexpected end", "next: fix it: kubectl edit project ads")),
        ({"kinds": ["Service"]}, ("unknown kind of workload 'Service'",)),
    ],
)
def test_reports_invalid_policy_and_stays_ready(rule: dict[str, Any], expected: tuple[str, ...]) -> None:
    planned = plan(snapshot_with_objects(policies=[{**RULE, **rule}]))
    assert planned.why
    text = planned.why.text()
    for part in ("policy two of project ads is invalid: ", *expected):
        assert part in text
    (ready,) = planned.status.conditions
    assert (ready.status, ready.reason) == ("True", "PolicyInvalid")


def test_valid_policies_are_no_problem() -> None:
    planned = plan(snapshot_with_objects(policies=[RULE]))
    assert planned.why is None
    assert [each.reason for each in planned.status.conditions] == ["Available"]
