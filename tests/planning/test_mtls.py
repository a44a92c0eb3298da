"""Mutual TLS in a plan: the opened port, the settings of the proxy, and refusals."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
import yaml

from pincompute.api.mtls import FIRST_CALL_PORT, MTLS_PORT
from pincompute.api.names import CALLERS_LABEL, IN_PLACE_HASH_LABEL
from pincompute.api.serverset import ServersetKey
from pincompute.base.reasons import CALL_REFUSED, CALLEE_UNREACHABLE, MTLS_NOT_SERVED
from pincompute.engine.first_runtime import PARTS_FOLDER, bundled_runtime_objects
from pincompute.engine.mtls.proxy import SOURCE
from pincompute.objects.content import Object
from pincompute.planning.diagnosis.calls import Callee, call_problem
from pincompute.planning.kinds.planners import PLANNERS
from pincompute.planning.kinds.project import plan as plan_project
from pincompute.planning.plan import Plan
from pincompute.planning.pods.mtls import MIN_LEAVE_SECONDS
from pincompute.planning.runtimes.selection import Runtimes
from pincompute.planning.snapshot import Native, Snapshot
from runtime_builders import CLUSTER, NOW, build_resource, build_runtimes, build_service

INTERNAL = {"internal": True}


def bundled() -> Runtimes:
    objects = bundled_runtime_objects()
    parts = next(each["spec"]["parts"] for each in objects if each["metadata"]["name"] == "1")
    runtime = {
        "kind": "Runtime", "metadata": {"name": "1"}, "spec": {"parts": parts},
        "status": {"done": "2026-01-01T00:00:00Z"},
    }  # fmt: skip
    sidecars = [each for each in objects if each["kind"] == "PinterestSidecar"]
    return build_runtimes(*map(build_resource, [*sidecars, runtime]))


def plan_called(**spec: Any) -> Plan:
    owner = build_service(uid="u1", loadBalancer=INTERNAL, **spec)
    return PLANNERS[owner.kind](Snapshot(owner, (), (), CLUSTER, NOW, None, bundled()))


def native(plan: Plan, kind: str) -> Object:
    (found,) = [each for each in plan.wanted if each["kind"] == kind]
    return found


def template_of(plan: Plan) -> Object:
    template: Object = native(plan, "Deployment")["spec"]["template"]
    return template


def errors_of(**spec: Any) -> list[str]:
    owner = build_service(**spec)
    return [f"{'.'.join(map(str, each.path))}: {each.what}" for each in owner.spec.field_errors("hello")]


def test_workload_without_either_field_is_as_before() -> None:
    plan = plan_called()
    assert [each["name"] for each in template_of(plan)["spec"]["initContainers"]] == ["logs"]
    assert CALLERS_LABEL not in template_of(plan)["metadata"]["labels"]
    assert not [each for each in plan.wanted if each["kind"] == "NetworkPolicy"]


def test_bundled_part_listens_where_the_plan_expects_it() -> None:
    spec = template_of(plan_called(callers=["web"]))["spec"]
    (proxy,) = [each for each in spec["initContainers"] if each["name"] == "mtls"]
    assert MTLS_PORT in [each["containerPort"] for each in proxy["ports"]]
    programs = "".join(each.read_text() for each in SOURCE.glob("*.go"))
    assert f'":{MTLS_PORT}"' in programs
    assert f'mtlsPort = "{MTLS_PORT}"' in programs
    assert "connectionAge = 3 * time.Second" in programs
    assert MIN_LEAVE_SECONDS > 3


def test_another_version_of_the_part_is_no_update_in_place() -> None:
    """A restart of the proxy alone would refuse connections: pods are replaced, with surge."""
    bodies = yaml.safe_load((PARTS_FOLDER / "mtls-1.yaml").read_text())
    next_body = msgspec.json.decode(msgspec.json.encode(bodies))
    (container,) = next_body["spec"]["sidecars"]
    container["image"] = "pincompute-mtls:2"
    (version,) = [each for each in container["env"] if each["name"] == "MTLS_VERSION"]
    assert version["value"] == bodies["metadata"]["name"].rpartition("-")[2]
    version["value"] = "2"
    hashes = []
    for body in (bodies, next_body):
        runtimes = build_runtimes(
            build_resource(yaml.safe_load((PARTS_FOLDER / "identity-1.yaml").read_text())),
            build_resource(body),
            build_resource({
                "kind": "Runtime", "metadata": {"name": "1"}, "spec": {"parts": ["identity-1", "mtls-1"]},
                "status": {"done": "2026-01-01T00:00:00Z"},
            }),
        )  # fmt: skip
        owner = build_service(uid="u1", loadBalancer=INTERNAL, callers=["web"])
        plan = PLANNERS[owner.kind](Snapshot(owner, (), (), CLUSTER, NOW, None, runtimes))
        hashes.append(template_of(plan)["metadata"]["labels"][IN_PLACE_HASH_LABEL])
    assert hashes[0] != hashes[1]


def test_replica_stays_until_no_connection_leads_to_it() -> None:
    (program,) = template_of(plan_called(callers=["web"]))["spec"]["containers"]
    assert program["lifecycle"] == {"preStop": {"sleep": {"seconds": MIN_LEAVE_SECONDS}}}
    (program,) = template_of(plan_called(callers=["web"], shutdown={"leaveSeconds": 60}))["spec"]["containers"]
    assert program["lifecycle"] == {"preStop": {"sleep": {"seconds": 60}}}


def test_all_containers_have_the_urls_of_callees() -> None:
    template = {"spec": {"containers": [{"name": "helper", "image": "helper:1"}]}}
    plan = plan_called(calls=["api", "shop/cart-v2"], template=template)
    for container in template_of(plan)["spec"]["containers"]:
        variables = {each["name"]: each.get("value") for each in container["env"]}
        assert variables["CALL_API"] == f"http://127.0.0.1:{FIRST_CALL_PORT}"
        assert variables["CALL_SHOP_CART_V2"] == f"http://127.0.0.1:{FIRST_CALL_PORT + 1}"


def test_projects_leave_pods_with_callers_to_their_own_policy() -> None:
    project = build_resource(
        {"kind": "Project", "metadata": {"name": "shop", "uid": "p1"}, "spec": {"owner": "x", "callers": ["ads"]}}
    )
    namespace = {
        "kind": "Namespace",
        "metadata": {"name": "shop", "uid": "n1", "ownerReferences": [{"uid": "p1", "controller": True}]},
    }
    plan = plan_project(Snapshot(project, (msgspec.convert(namespace, Native),), (), CLUSTER, NOW))
    policies = {
        each["metadata"]["name"]: each["spec"]["podSelector"] for each in plan.wanted if each["kind"] == "NetworkPolicy"
    }
    without = {"matchExpressions": [{"key": CALLERS_LABEL, "operator": "DoesNotExist"}]}
    assert {name for name, selector in policies.items() if selector == without} == {"from-project", "from-callers"}
    assert all(selector == {} for name, selector in policies.items() if name not in {"from-project", "from-callers"})


@pytest.mark.parametrize(
    ("spec", "error"),
    [
        (
            {"calls": ["shop/api", "shop-api"]},
            "calls.1: shop/api and shop-api would both be the variable CALL_SHOP_API",
        ),
        ({"calls": ["api"], "environment": {"CALL_API": "x"}}, "calls.0: CALL_API is set in environment"),
        ({"calls": ["api", "api"]}, "calls.1: duplicate name 'api'"),
        ({"callers": ["web", "web"]}, "callers.1: duplicate name 'web'"),
        ({"callers": [f"me/{'w' * 64}"]}, "callers.0: a name of"),
        ({"callers": ["web"], "port": MTLS_PORT}, f"port: port {MTLS_PORT} is that of mutual TLS"),
        ({"callers": ["web"], "ports": [{"name": "mtls", "port": 9}]}, "ports.0.name: the name mtls is that of"),
        ({"callers": ["web"], "ports": [{"name": "x", "port": MTLS_PORT}]}, f"ports.0.port: port {MTLS_PORT} is"),
        ({"callers": ["web"], "loadBalancer": {"port": MTLS_PORT}}, f"loadBalancer.port: port {MTLS_PORT} is"),
        ({"callers": ["web"], "loadBalancer": {"portName": ""}}, "loadBalancer.portName: every port needs a name"),
        ({"callers": ["web"], "worker": True}, "callers: a worker has no address"),
    ],
)
def test_impossible_values_are_refused(spec: dict[str, Any], error: str) -> None:
    assert any(each.startswith(error) for each in errors_of(**spec)), errors_of(**spec)


def callee(project: str = "shop", name: str = "api", *, ready: int = 1, reason: str = "", **spec: Any) -> Callee:
    conditions = (
        [
            {
                "type": "Ready",
                "status": "False",
                "reason": reason,
                "message": "told",
                "lastTransitionTime": "2026-01-01T00:00:00Z",
            }
        ]
        if reason
        else []
    )
    metadata = {"name": name, "project": project, "uid": "u2"}
    whole = {"image": "api:1", "port": 8080, **spec}
    status = {"readyReplicas": ready, "conditions": conditions, "next": "roll it out"}
    document = {"kind": "PinterestService", "metadata": metadata, "spec": whole, "status": status}
    return Callee(ServersetKey(project, name), build_resource(document))


@pytest.mark.parametrize(
    ("called", "reason", "what"),
    [
        (callee(callers=["me/hello"]), None, ""),
        (callee("me", callers=["hello"]), None, ""),
        (callee(callers=["hello"]), CALL_REFUSED, "hello is not among the callers of shop/api"),
        (callee(), CALL_REFUSED, "hello is not among the callers of shop/api"),
        (Callee(ServersetKey("shop", "api")), CALL_REFUSED, "hello is not among the callers of shop/api"),
        (Callee(ServersetKey("me", "api")), CALLEE_UNREACHABLE, "there is no service or stateful set me/api"),
        (callee(callers=["me/hello"], ready=0), CALLEE_UNREACHABLE, "shop/api, which hello calls, has no ready"),
        (callee(callers=["me/hello"], reason="MtlsNotServed"), MTLS_NOT_SERVED, "shop/api lists hello among its"),
    ],
)
def test_why_tells_what_prevents_a_call(called: Callee, reason: object, what: str) -> None:
    problem = call_problem(build_service(calls=["shop/api"]), called)
    assert (problem.reason if problem else None) is reason
    assert not problem or problem.what.startswith(what)


def test_missing_workload_of_another_project_looks_like_one_that_does_not_list_the_caller() -> None:
    owner = build_service(calls=["shop/api"])
    assert call_problem(owner, callee()) == call_problem(owner, Callee(ServersetKey("shop", "api")))
    problem = call_problem(owner, callee())
    assert problem is not None
    assert problem.next == "owner of api adds callers: [me/hello], and: pin deploy FILE -p shop"
