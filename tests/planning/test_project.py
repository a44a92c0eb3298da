"""What a project gives to whom, and what it bounds."""

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
from pincompute.planning.names import project_role
from pincompute.planning.project import plan
from pincompute.planning.snapshot import Cluster, Native, Snapshot

NAMESPACE: Object = {
    "kind": "Namespace",
    "metadata": {"name": "ads", "ownerReferences": [{"uid": "1", "controller": True}]},
}
MEMBERS = {"owner": {"people": ["ann"]}, "deployer": {"groups": ["ads"]}, "viewer": {"people": ["eve"]}}


def snapshot(**spec: Any) -> Snapshot:
    whole = {"owner": "team-ads", "quota": {"on-demand": {}}, **spec}
    document = {"kind": "Project", "metadata": {"name": "ads", "uid": "1", "generation": 1}, "spec": whole}
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
    found = wanted("RoleBinding", **spec)
    return {name: {each["name"] for each in binding["subjects"]} for name, binding in found.items()}


def hard(**quota: Any) -> dict[str, dict[str, str]]:
    return {name: each["spec"]["hard"] for name, each in wanted("ResourceQuota", quota=quota).items()}


def test_each_role_may_do_what_those_after_it_may() -> None:
    assert bindings(members=MEMBERS) == {
        "owner": {"ann"},
        "deployer": {"ann", "ads"},
        "viewer": {"ann", "ads", "eve"},
    }


def test_only_where_review_is_open_work_comes_in_past_the_desk() -> None:
    assert "submitter" not in bindings(members=MEMBERS, review="landed")
    assert bindings(members=MEMBERS, review="open")["submitter"] == {"ann", "ads"}
    assert bindings(members={"viewer": {"people": ["eve"]}}, review="open") == {"viewer": {"eve"}}


def test_without_members_nobody_has_rights() -> None:
    assert bindings() == {}


def test_in_which_order_members_are_named_does_not_matter() -> None:
    one = plan(snapshot(members={"owner": {"people": ["ann", "ben"]}}, callers=["a", "b"]))
    other = plan(snapshot(members={"owner": {"people": ["ben", "ann"]}}, callers=["b", "a"]))
    assert one == other


def test_a_tier_that_is_not_named_may_not_be_used_and_one_without_bounds_has_no_quota() -> None:
    none = {"pods": "0"}
    assert hard(**{"on-demand": {}}) == dict.fromkeys(("reserved", "preemptible", "infrastructure", "no-tier"), none)


def test_only_where_infrastructure_is_named_may_programs_have_rights_on_a_node() -> None:
    for tier, level in (("on-demand", "restricted"), ("infrastructure", "privileged")):
        (namespace,) = wanted("Namespace", quota={tier: {"pods": 1}}).values()
        assert namespace["metadata"]["labels"]["pod-security.kubernetes.io/enforce"] == level


def test_nothing_is_a_bound_too() -> None:
    assert hard(reserved={"gpus": 0, "cpu": 0, "memory": "0"})["reserved"] == {
        "requests.nvidia.com/gpu": "0",
        "requests.cpu": "0",
        "requests.memory": "0",
    }


def test_every_pod_is_counted_by_one_quota_or_none() -> None:
    """What no tier's quota matches, the one for the rest does."""
    found = wanted("ResourceQuota", quota={"reserved": {"cpu": 1}})
    scopes = {name: each["spec"]["scopeSelector"]["matchExpressions"][0] for name, each in found.items()}
    tiers = [value for name, scope in scopes.items() if scope["operator"] == "In" for value in scope["values"]]
    assert scopes["no-tier"] == {"scopeName": "PriorityClass", "operator": "NotIn", "values": tiers}


@pytest.mark.parametrize("namespace", [{}, {"deletionTimestamp": "2026-01-30T00:00:00Z"}])
def test_nobody_gets_rights_in_a_namespace_of_somebody_else(namespace: Object) -> None:
    seen = msgspec.convert({"kind": "Namespace", "metadata": {"name": "ads", **namespace}}, Native)
    planned = plan(snapshot(members=MEMBERS)._replace(natives=(seen,)))
    assert [each["kind"] for each in planned.wanted] == ["Namespace"]


# The roles that the bindings name.
def roles() -> dict[str, list[Object]]:
    text = (Path(engine.__file__).parent / "manifests" / "roles.yaml").read_text()
    return {each["metadata"]["name"]: each["rules"] for each in yaml.safe_load_all(text)}


def may(role: str, group: str, verb: str) -> set[str]:
    rules = [rule for rule in roles()[project_role(role)] if group in rule["apiGroups"] and verb in rule["verbs"]]
    return {resource for rule in rules for resource in rule["resources"]}


INSIDE = {"pods/exec", "pods/portforward"}


def test_the_roles_are_there_and_give_no_wildcard() -> None:
    named = {each["roleRef"]["name"] for each in wanted("RoleBinding", members=MEMBERS, review="open").values()}
    assert named == roles().keys()
    assert "*" not in str(roles())


def test_nobody_makes_pods_nor_rights_nor_sees_secrets_by_looking() -> None:
    for role in ("viewer", "deployer", "owner", "submitter"):
        assert may(role, "rbac.authorization.k8s.io", "create") == set()
        assert may(role, "", "create") <= {"secrets", *INSIDE}
        assert may(role, "apps", "create") == may(role, "batch", "create") == set()
    assert "secrets" not in may("viewer", "", "list") | may("deployer", "", "list")


def test_only_owners_go_into_a_copy_where_only_landed_work_runs() -> None:
    """The last of these roles is given where anybody's work is taken."""
    assert [role for role in ("viewer", "deployer", "owner", "submitter") if may(role, "", "create") & INSIDE] == [
        "owner",
        "submitter",
    ]


@pytest.mark.parametrize("kind", WORKLOADS.values(), ids=lambda kind: kind.__name__)
def test_every_kind_of_work_is_in_the_roles(kind: Any) -> None:
    assert kind.plural() in may("viewer", "pinterest.com", "list")
    # Daemons are the infrastructure team's own.
    assert (kind.plural() in may("submitter", "pinterest.com", "create")) == (kind.__name__ != "PinterestDaemon")
    assert (f"{kind.plural()}/scale" in may("submitter", "pinterest.com", "patch")) == kind.SCALES


def made(**spec: Any) -> Snapshot:
    """All that it becomes is there, and nothing of its quota is used."""

    def there(native: Object) -> Native:
        hard = native.get("spec", {}).get("hard", {})
        return msgspec.convert({**native, "status": {"hard": hard, "used": dict.fromkeys(hard, "0")}}, Native)

    first = snapshot(**spec)
    return first._replace(natives=(*first.natives, *map(there, plan(first).wanted[1:])))


RULE = {"name": "two", "rule": "workload.spec.replicas >= 2", "message": "two at least", "kinds": ["PinterestService"]}


@pytest.mark.parametrize(
    ("rule", "told"),
    [
        ({"rule": "workload.spec.replica >= 2"}, ("has no field 'replica'", "next: did you mean replicas?")),
        ({"rule": "workload.spec.replicas >="}, ("it ends too early", "next: mend it: kubectl edit project ads")),
        ({"kinds": ["Service"]}, ("there is no kind 'Service' of workload",)),
    ],
)
def test_a_rule_that_cannot_be_read_is_told_whoever_wrote_it_and_the_project_is_as_ready_as_ever(
    rule: dict[str, Any], told: tuple[str, ...]
) -> None:
    planned = plan(made(policies=[{**RULE, **rule}]))
    assert planned.why
    said = planned.why.text()
    assert [each for each in ("the policy two of project ads cannot be kept: ", *told) if each not in said] == []
    (ready,) = planned.status.conditions
    assert (ready.status, ready.reason) == ("True", "PolicyUnclear")


def test_rules_that_can_be_read_are_not_told() -> None:
    planned = plan(made(policies=[RULE]))
    assert planned.why is None
    assert [each.reason for each in planned.status.conditions] == ["Available"]
