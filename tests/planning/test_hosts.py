"""To which project a host belongs: by its domain, by lists of hosts, and by age."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import pytest

from pincompute.api.hosts import HostRules
from pincompute.api.project import Project
from pincompute.base.reasons import HOST_KEPT, HOST_NOT_LISTED, HOST_RESERVED, HOST_TAKEN
from pincompute.objects.content import Object
from pincompute.planning.hosts import HOST_GRANTED, HostClaim, HostVerdict, host_claim, judge_claim
from pincompute.planning.snapshot import Cluster
from runtime_builders import build_resource

RULES = HostRules("apps.corp.com", ("pin.corp.com",))
OLD, NEW = "2026-01-01T00:00:01Z", "2026-01-01T00:00:02Z"
SHOP = "shop.example.com"


def claim(project: str, host: str = SHOP, *, created: str = OLD, served: bool = False) -> HostClaim:
    return HostClaim(host, project, "web", created, served)


def projects(**hosts: Sequence[str]) -> dict[str, Project]:
    def build(name: str, listed: Sequence[str]) -> Any:
        spec: Object = {"owner": "team", "quota": {"on-demand": {}}, "hosts": list(listed)}
        return build_resource({"kind": "Project", "metadata": {"name": name}, "spec": spec})

    return {name: build(name, listed) for name, listed in hosts.items()}


def judge(asking: HostClaim, *others: HostClaim, **hosts: Sequence[str]) -> HostVerdict:
    return judge_claim(asking, [asking, *others], RULES, projects(**hosts))


@pytest.mark.parametrize(
    "host",
    [
        "localhost",
        "apps.corp.com",
        "pin.corp.com",
        "10.0.0.7",
        "web.me.svc",
        "web.me.svc.cluster.local",
    ],
)
def test_reserved_host_belongs_to_no_project(host: str) -> None:
    problem = judge(claim("me", host, served=True), me=[]).problem
    assert problem is not None
    assert problem.reason is HOST_RESERVED
    assert host in problem.what


@pytest.mark.parametrize("host", ["web.you.apps.corp.com", "a.b.you.apps.corp.com"])
def test_host_below_the_domain_of_another_project_is_taken(host: str) -> None:
    problem = judge(claim("me", host, served=True), me=[host], you=[]).problem
    assert problem is not None
    assert problem.reason is HOST_TAKEN
    assert problem.what == f"the host {host} belongs to project you, as all below you.apps.corp.com"
    assert problem.next == "leave out loadBalancer.host"
    # The answer does not tell whether the project exists.
    assert judge(claim("me", host), me=[]).problem == problem


def test_hosts_of_the_own_domain_are_granted() -> None:
    for host in ("web.me.apps.corp.com", "a.b.me.apps.corp.com", "me.apps.corp.com"):
        assert judge(claim("me", host), claim("you", host, served=True), me=[], you=[]) is HOST_GRANTED


def test_custom_host_must_be_in_the_list() -> None:
    problem = judge(claim("me"), me=["www.example.com"]).problem
    assert problem is not None
    assert problem.reason is HOST_NOT_LISTED
    assert problem.what == "the host shop.example.com was not given to project me"
    assert problem.next == (
        "leave out loadBalancer.host, or ask an administrator for the host: "
        """kubectl patch project me --type merge -p '{"spec":{"hosts":["shop.example.com","www.example.com"]}}'"""
    )
    assert judge(claim("me"), me=[SHOP]) is HOST_GRANTED
    assert judge(claim("me"), me=["*.example.com"]) is HOST_GRANTED
    assert judge(claim("me", "a.shop.example.com"), me=["*.example.com"]).problem


def test_host_that_was_given_to_another_project_is_named() -> None:
    problem = judge(claim("me"), me=[], you=[SHOP]).problem
    assert problem is not None
    assert problem.reason is HOST_TAKEN
    assert problem.what == "the host shop.example.com was given to project you"


def test_list_decides_before_age() -> None:
    old, new = claim("me", served=True), claim("you", created=NEW)
    hosts: dict[str, Sequence[str]] = {"me": [], "you": [SHOP]}
    assert judge(new, old, **hosts) is HOST_GRANTED
    lost = judge(old, new, **hosts).problem
    assert lost is not None
    assert lost.what == "the host shop.example.com belongs to project you"


def test_host_in_a_list_decides_before_a_wildcard() -> None:
    hosts: dict[str, Sequence[str]] = {"me": ["*.example.com"], "you": [SHOP]}
    assert judge(claim("me"), claim("you", created=NEW), **hosts).problem
    assert judge(claim("you", created=NEW), claim("me", served=True), **hosts) is HOST_GRANTED


def test_served_host_is_kept_with_a_warning() -> None:
    verdict = judge(claim("me", served=True), me=[])
    assert verdict.problem is None
    assert verdict.kept is not None
    assert verdict.kept.reason is HOST_KEPT
    assert verdict.kept.next.startswith("kubectl patch project me ")


def test_of_equal_rights_the_one_that_is_served_and_then_the_oldest_wins() -> None:
    both: dict[str, Sequence[str]] = {"me": [SHOP], "you": [SHOP]}
    old, new = claim("me"), claim("you", created=NEW)
    assert judge(old, new, **both) is HOST_GRANTED
    assert judge(new, old, **both).problem
    assert judge(new._replace(served=True), old, **both) is HOST_GRANTED
    assert judge(old, new._replace(served=True), **both).problem
    # The project's name decides between equal ages.
    assert judge(claim("you"), claim("me"), **both).problem


def test_claim_without_a_right_does_not_block_others() -> None:
    squatter = claim("you", created=OLD)
    assert judge(claim("me", created=NEW), squatter, me=[SHOP], you=[]) is HOST_GRANTED
    assert judge(claim("me", created=NEW, served=True), squatter, me=[], you=[]).problem is None


def test_namespace_without_project_has_no_list() -> None:
    assert judge(claim("plain")) is HOST_GRANTED
    assert judge(claim("plain", created=NEW), claim("other")).problem
    assert judge(claim("plain"), claim("you", created=NEW), you=[SHOP]).problem


def stored_service(host: str = SHOP, address: str = "", **balancer: object) -> Any:
    resource = build_resource(
        {
            "kind": "PinterestService",
            "metadata": {"name": "web", "project": "me"},
            "spec": {"image": "a:1", "port": 80, "loadBalancer": {"host": host, **balancer}},
        }
    )
    return msgspec.structs.replace(resource, status=msgspec.structs.replace(resource.status, address=address))


def test_claim_of_service() -> None:
    assert host_claim(stored_service("")) is None
    assert host_claim(stored_service(internal=True)) is None
    found = host_claim(stored_service(address="http://shop.example.com:8080/api"))
    assert found is not None
    assert found.served
    # A proposed address is served only if the stored workload has it.
    proposed = host_claim(
        stored_service(address="http://shop.example.com"), stored_service("other.example.com", "http://other")
    )
    assert proposed is not None
    assert not proposed.served


def test_path_of_a_host_leads_to_one_service_of_the_project() -> None:
    first, second = claim("me"), claim("me", created=NEW)._replace(name="copy")
    assert judge(first, second, me=[SHOP]) is HOST_GRANTED
    problem = judge(second, first, me=[SHOP]).problem
    assert problem is not None
    assert problem.reason is HOST_TAKEN
    assert problem.what == "the host shop.example.com with the path / leads to service web"
    assert judge(second._replace(path="/copy"), first, me=[SHOP]) is HOST_GRANTED


def test_older_service_does_not_take_a_path_that_is_served() -> None:
    older = host_claim(stored_service(address="http://shop.example.com/api"))
    assert older is not None
    served = claim("me", created="2026-01-31T00:00:00Z", served=True)._replace(name="copy", path_served=True)
    assert judge(older, served, me=[SHOP]).problem
    moved = host_claim(stored_service(path="/api/", address="http://shop.example.com/api"))
    assert moved is not None
    assert (moved.path, moved.path_served) == ("/api", True)
    assert judge(moved, served, me=[SHOP]) is HOST_GRANTED


def test_administrators_reserve_hosts_in_the_facts_of_a_cluster() -> None:
    facts = {"name": "main", "domain": "corp.com", "port": "80", "nodes": "real"}
    assert Cluster.from_facts(facts).host_rules == HostRules("corp.com", ())
    reserved = Cluster.from_facts({**facts, "reservedHosts": "a.corp.com b.corp.com"}).host_rules
    assert reserved.is_reserved("b.corp.com")
