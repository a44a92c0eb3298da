"""Which owners a change of a project, a runtime or a part affects: exactly those are reconciled."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import msgspec

from pincompute.controller.planning_context import PlanningContextCache
from pincompute.kube.watch import ADDED, DELETED, MODIFIED, Event
from pincompute.objects.content import Object
from runtime_builders import CLUSTER, build_part, build_resource, build_runtime

NOW = datetime(2026, 1, 31, 12, 0, 0, tzinfo=UTC)
DONE = "2026-01-30T12:00:00Z"


def build_service(project: str, name: str) -> Any:
    spec = {"image": "hello:dev", "port": 8080}
    return build_resource({"kind": "PinterestService", "metadata": {"name": name, "project": project}, "spec": spec})


def cluster_scoped(each: Any) -> Any:
    return msgspec.structs.replace(each, metadata=msgspec.structs.replace(each.metadata, namespace=""))


SHOP, WEB = build_service("me", "shop"), build_service("you", "web")

PART, PREPARED = cluster_scoped(build_part("logs-1")), cluster_scoped(build_runtime(1, "logs-1", roll={"waves": [100]}))


def project(**spec: Any) -> Any:
    body: Object = {"owner": "team-ads", "quota": {"on-demand": {}}, **spec}
    return build_resource({"kind": "Project", "metadata": {"name": "me"}, "spec": body})


def affected_names(context: PlanningContextCache, type_: str, each: Any) -> list[str]:
    is_affected = context.observe(Event(type_, each), NOW)
    return [owner.metadata.name for owner in (SHOP, WEB, PART, PREPARED) if is_affected and is_affected(owner)]


def test_spec_of_project_affects_its_workloads() -> None:
    context, before = PlanningContextCache(), project()
    assert affected_names(context, ADDED, before) == ["shop"]
    assert affected_names(context, MODIFIED, msgspec.structs.replace(before)) == []
    assert affected_names(context, MODIFIED, project(costCentre="4711")) == ["shop"]
    assert context.projects["me"].spec.cost_centre == "4711"
    assert affected_names(context, DELETED, project()) == ["shop"]
    assert context.projects == {}


def test_runtime_affects_workloads_that_get_it_and_all_runtimes_and_parts() -> None:
    context = PlanningContextCache()
    context.observe(Event(ADDED, PART), NOW)
    assert affected_names(context, ADDED, PREPARED) == ["logs-1", "1"]
    current = build_runtime(1, "logs-1", roll={"waves": [100]}, done=DONE)
    assert affected_names(context, MODIFIED, current) == ["shop", "web", "logs-1", "1"]
    assert context.runtimes.current == 1
    assert context.rolling_runtime is None
    with_status = msgspec.structs.replace(current, status=msgspec.structs.replace(current.status, wave="1 of 1"))
    assert affected_names(context, MODIFIED, with_status) == []
    assert affected_names(context, DELETED, current) == ["shop", "web", "logs-1", "1"]


def with_host(each: Any, host: str, address: str = "") -> Any:
    balancer = msgspec.structs.replace(each.spec.load_balancer, host=host)
    status = msgspec.structs.replace(each.status, address=address)
    return msgspec.structs.replace(each, spec=msgspec.structs.replace(each.spec, load_balancer=balancer), status=status)


def test_service_affects_those_with_the_same_host() -> None:
    context = PlanningContextCache()
    shop, web = with_host(SHOP, "a.example.com"), with_host(WEB, "a.example.com")
    assert affected_names(context, ADDED, shop) == []
    assert affected_names(context, ADDED, web) == ["shop"]
    assert affected_names(context, MODIFIED, web) == []
    assert affected_names(context, MODIFIED, with_host(WEB, "a.example.com", "http://a.example.com")) == ["shop"]
    assert affected_names(context, MODIFIED, with_host(WEB, "b.example.com")) == ["shop"]
    assert affected_names(context, DELETED, WEB) == []
    assert affected_names(context, ADDED, web) == ["shop"]
    assert affected_names(context, DELETED, web) == ["shop"]


def test_hosts_of_a_project_affect_all_services_that_ask_for_them() -> None:
    context = PlanningContextCache()
    context.observe(Event(ADDED, project()), NOW)
    context.observe(Event(ADDED, with_host(WEB, "a.example.com")), NOW)
    assert affected_names(context, MODIFIED, project(hosts=["a.example.com"])) == ["shop", "web"]
    assert affected_names(context, MODIFIED, project(hosts=["b.example.com"])) == ["shop", "web"]
    assert affected_names(context, MODIFIED, project(hosts=["b.example.com", "c.example.com"])) == ["shop"]
    assert affected_names(context, MODIFIED, project(hosts=["*.example.com"])) == ["shop", "web"]


def test_verdict_follows_the_claims_of_other_projects() -> None:
    context = PlanningContextCache()
    web, shop = with_host(WEB, "a.example.com", "http://a.example.com"), with_host(SHOP, "a.example.com")
    context.observe(Event(ADDED, project(hosts=["a.example.com"])), NOW)
    context.observe(Event(ADDED, web), NOW)
    assert context.host_verdict(web, CLUSTER).problem is None
    context.observe(Event(ADDED, shop), NOW)
    lost = context.host_verdict(web, CLUSTER).problem
    assert lost is not None
    assert lost.what == "the host a.example.com belongs to project me"
    assert context.host_verdict(shop, CLUSTER).problem is None
    context.observe(Event(DELETED, shop), NOW)
    assert context.host_verdict(web, CLUSTER).problem is None
