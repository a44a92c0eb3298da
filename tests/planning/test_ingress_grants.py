"""Annotations and issuers of Ingresses: closed unless the project opens them, and some closed for good."""

from __future__ import annotations

from datetime import UTC, datetime

import msgspec
import pytest

from pincompute.api.documents import read_document
from pincompute.api.project import Project
from pincompute.api.service import PinterestService
from pincompute.api.validation import parse_resource
from pincompute.base.problem import Problem, Refused
from pincompute.kube.resource import Object
from pincompute.planning.plan import Plan
from pincompute.planning.snapshot import Snapshot
from pincompute.planning.views.plan_preview import LOCAL_CLUSTER, as_first_generation, converged_plan

NOW = datetime(2026, 1, 31, 12, tzinfo=UTC)
TIMEOUT = "nginx.ingress.kubernetes.io/proxy-read-timeout"
SNIPPET = "nginx.ingress.kubernetes.io/server-snippet"
CLOSED_FOR_GOOD = [
    SNIPPET,
    "nginx.ingress.kubernetes.io/configuration-snippet",
    "nginx.ingress.kubernetes.io/Server-Snippet",
    "nginx.org/location-snippets",
    "haproxy.org/backend-config-snippet",
    "nginx.ingress.kubernetes.io/server-alias",
    "external-dns.alpha.kubernetes.io/hostname",
    "cert-manager.io/cluster-issuer",
    "cert-manager.io/secret-template",
    "acme.cert-manager.io/http01-override-ingress-name",
    "kubernetes.io/tls-acme",
    "kubernetes.io/ingress.class",
    "kubectl.kubernetes.io/last-applied-configuration",
    "pinterest.com/wanted",
    "pinterest.com/owner",
    "x.pinterest.com/a",
]


def service_document(balancer: Object) -> Object:
    return {
        "apiVersion": "pinterest.com/v1",
        "kind": "PinterestService",
        "metadata": {"name": "web", "project": "ads"},
        "spec": {"image": "web:1", "port": 8080, "loadBalancer": balancer},
    }


def project_document(grants: Object) -> Object:
    spec: Object = {"owner": "team-ads", "quota": {"on-demand": {}}, "ingress": grants}
    return {"apiVersion": "pinterest.com/v1", "kind": "Project", "metadata": {"name": "ads"}, "spec": spec}


def rejections(document: Object) -> tuple[Problem, ...]:
    with pytest.raises(Refused) as refused:
        parse_resource(read_document(msgspec.json.encode(document).decode()), "ads")
    return tuple(refused.value.problems)


def unchecked_service(balancer: Object) -> PinterestService:
    """As written past the desk."""
    document = service_document(balancer)
    metadata = {"name": "web", "namespace": "ads", "uid": "1"}
    return msgspec.convert({**document, "metadata": metadata}, PinterestService)


def planned_ingress(balancer: Object, grants: Object | None) -> Object:
    (ingress,) = [each for each in plan_of(balancer, grants).wanted if each["kind"] == "Ingress"]
    return ingress


def plan_of(balancer: Object, grants: Object | None) -> Plan:
    project = None if grants is None else msgspec.convert(project_document(grants), Project)
    return converged_plan(
        Snapshot(as_first_generation(unchecked_service(balancer)), (), (), LOCAL_CLUSTER, NOW, project)
    )


@pytest.mark.parametrize("key", CLOSED_FOR_GOOD)
def test_no_project_is_given_a_key_of_the_platform_or_a_snippet(key: str) -> None:
    (problem,) = rejections(project_document({"annotations": [TIMEOUT, key]}))
    assert (problem.where.field, problem.what) == ("spec.ingress.annotations.1", f"no project can be given {key}")
    (problem,) = rejections(service_document({"annotations": {key: "a"}}))
    assert problem.what == f"the Ingress cannot have the annotation {key}"
    assert problem.next == "remove it"


@pytest.mark.parametrize("key", CLOSED_FOR_GOOD)
def test_listed_snippet_stays_closed(key: str) -> None:
    """By an administrator with kubectl, to a member with kubectl."""
    plan = plan_of({"annotations": {key: "a"}}, {"annotations": [key]})
    assert [each.reason.code for each in plan.problems] == ["Forbidden"]
    assert plan.wanted == ()


@pytest.mark.parametrize("pattern", ["*", "nginx.ingress.kubernetes.io/*", "nginx.ingress.kubernetes.io/"])
def test_wildcards_open_nothing(pattern: str) -> None:
    (problem,) = rejections(project_document({"annotations": [pattern]}))
    assert problem.where.field == "spec.ingress.annotations.0"
    with pytest.raises(msgspec.ValidationError):
        plan_of({"annotations": {TIMEOUT: "60"}}, {"annotations": [pattern]})


@pytest.mark.parametrize("grants", [None, {}, {"annotations": [TIMEOUT.upper()]}, {"issuers": {"other": "Issuer"}}])
def test_annotations_and_issuers_are_closed_by_default(grants: Object | None) -> None:
    plan = plan_of({"annotations": {TIMEOUT: "60"}, "issuer": "letsencrypt"}, grants)
    assert [each.where.field for each in plan.problems] == [
        f"spec.loadBalancer.annotations.{TIMEOUT}",
        "spec.loadBalancer.issuer",
    ]


@pytest.mark.parametrize("value", ["60; return 200", "60 }", "{", "60\nreturn", "60\r", "a\u2028b", "\u0000"])
def test_value_cannot_end_a_directive(value: str) -> None:
    (problem,) = rejections(service_document({"annotations": {TIMEOUT: value}}))
    assert problem.where.field == f"spec.loadBalancer.annotations.{TIMEOUT}"
    assert len(plan_of({"annotations": {TIMEOUT: value}}, {"annotations": [TIMEOUT]}).problems) == 1


def test_values_of_other_controllers_may_be_json() -> None:
    key, value = "alb.ingress.kubernetes.io/listen-ports", '[{"HTTP": 80}]'
    assert (
        planned_ingress({"annotations": {key: value}}, {"annotations": [key]})["metadata"]["annotations"][key] == value
    )


def test_thousand_annotations_are_refused_by_their_number() -> None:
    (problem,) = rejections(service_document({"annotations": {f"example.com/a{n}": "x" for n in range(1000)}}))
    assert problem.where.field == "spec.loadBalancer.annotations"
    assert problem.what == "annotations has 1,000 entries, the maximum is 32"


def test_message_about_a_long_key_is_short() -> None:
    (problem,) = plan_of({"annotations": {"a" * 100_000: "x"}}, {}).problems
    assert len(problem.text()) < 2_000


def test_issuer_names_a_secret_of_the_platform() -> None:
    """Also if a member writes both past the desk: cert-manager must not write a Secret of the member's choice."""
    for kind, key in (("ClusterIssuer", "cert-manager.io/cluster-issuer"), ("Issuer", "cert-manager.io/issuer")):
        ingress = planned_ingress({"issuer": "ca", "tls": "database"}, {"issuers": {"ca": kind}})
        assert ingress["metadata"]["annotations"][key] == "ca"
        assert ingress["spec"]["tls"] == [{"hosts": ["web.ads.localhost"], "secretName": "web-certificate"}]
    (problem,) = rejections(service_document({"issuer": "ca", "tls": "database"}))
    assert (problem.where.field, problem.next) == ("spec.loadBalancer.issuer", "remove one")


@pytest.mark.parametrize("field", [{"issuer": "ca"}, {"annotations": {TIMEOUT: "60"}}])
def test_internal_service_has_neither(field: Object) -> None:
    (problem,) = rejections(service_document({"internal": True, **field}))
    assert problem.what == f"an internal service has no Ingress, and so no {next(iter(field))}"
