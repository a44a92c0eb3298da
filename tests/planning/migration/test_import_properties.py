"""For every Deployment, the imported file runs the same, or the import reports the difference."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import msgspec
from hypothesis import given, settings, strategies as st

from pincompute.api.documents import Document, read_document
from pincompute.api.validation import parse_resource
from pincompute.base.problem import Refused
from pincompute.objects.content import Object
from pincompute.planning.migration.deployment_import import import_deployment
from pincompute.planning.migration.related_objects import RelatedObjects

Drawn = st.SearchStrategy[Any]

EXPECTED_DIFFERENCES = (
    # Settings of every replica, independent of the file.
    "serviceAccountName: ",
    "terminationGracePeriodSeconds: ",
    ".lifecycle: none -> ",
    ".readinessProbe: none -> ",
    # Defaults for missing resources.
    ".resources.limits.memory: none -> ",
    ".resources.requests.cpu: none -> ",
    ".resources.requests.memory: none -> ",
    # The platform sets the port in each container.
    ".env.PORT",
    "priorityClassName: ",
    "rollout.",
    "labels of the Deployment itself",
)
"""Starts of the lines, or parts after the name of a container, for differences that no file can avoid."""


def _name(entry: Any) -> str:
    return str(entry["name"])


_amounts = st.fixed_dictionaries(
    {}, optional={"cpu": st.sampled_from(["250m", "1", 2]), "memory": st.sampled_from(["64Mi", "1Gi"])}
)
_plain = st.fixed_dictionaries(
    {"name": st.sampled_from(["A", "B", "PORT", "HOST"]), "value": st.sampled_from(["", "a", "8080", "$(A)/b"])}
)
_references = st.fixed_dictionaries(
    {"name": st.sampled_from(["C", "D"]), "valueFrom": st.just({"fieldRef": {"fieldPath": "status.podIP"}})}
)
_probes = st.fixed_dictionaries(
    {},
    optional={
        "periodSeconds": st.sampled_from([1, 2, 10, 400]),
        "failureThreshold": st.sampled_from([1, 3, 100]),
        "timeoutSeconds": st.sampled_from([1, 5]),
        "initialDelaySeconds": st.sampled_from([0, 5]),
    },
).flatmap(
    lambda rest: st.sampled_from(
        [
            {**rest, "httpGet": {"path": "/healthz", "port": 8080, "scheme": "HTTP"}},
            {**rest, "httpGet": {"path": "/", "port": "http"}},
            {**rest, "httpGet": {"path": "/", "port": 9090, "scheme": "HTTPS"}},
            {**rest, "tcpSocket": {"port": 8080}},
            {**rest, "exec": {"command": ["true"]}},
        ]
    )
)
_security_contexts = st.fixed_dictionaries(
    {},
    optional={
        "runAsUser": st.sampled_from([0, 1000]),
        "runAsNonRoot": st.booleans(),
        "readOnlyRootFilesystem": st.booleans(),
        "allowPrivilegeEscalation": st.booleans(),
        "capabilities": st.sampled_from([{}, {"drop": ["ALL"]}, {"add": ["NET_ADMIN"]}]),
        "seccompProfile": st.sampled_from([{"type": "RuntimeDefault"}, {"type": "Unconfined"}]),
    },
)
_mounts = st.lists(
    st.fixed_dictionaries(
        {"name": st.sampled_from(["files", "key", "scratch"]), "mountPath": st.sampled_from(["/a", "/b", "/c"])},
        optional={"readOnly": st.booleans(), "subPath": st.just("app.conf")},
    ),
    unique_by=lambda each: each["mountPath"],
    max_size=3,
)
_container = {
    "image": st.sampled_from(["web", "web:1", "web:latest", "team/web@sha256:" + "0" * 64]),
}
_fields = {
    "command": st.just(["web"]),
    "args": st.just(["--serve", "$(A)"]),
    "workingDir": st.just("/srv"),
    "imagePullPolicy": st.sampled_from(["Always", "IfNotPresent", "Never"]),
    "env": st.lists(_plain | _references, unique_by=_name, max_size=4),
    "envFrom": st.just([{"configMapRef": {"name": "all"}}]),
    "resources": st.fixed_dictionaries({}, optional={"requests": _amounts, "limits": _amounts}),
    "livenessProbe": _probes,
    "readinessProbe": _probes,
    "securityContext": _security_contexts,
    "volumeMounts": _mounts,
    "lifecycle": st.sampled_from([{"preStop": {"sleep": {"seconds": 9}}}, {"postStart": {"exec": {"command": ["a"]}}}]),
    "terminationMessagePath": st.sampled_from(["/dev/termination-log", "/tmp/said"]),
    "stdin": st.booleans(),
}
_ports: Drawn = st.sampled_from(
    [
        list[Object](),
        [{"containerPort": 8080}],
        [{"name": "http", "containerPort": 8080, "protocol": "TCP"}],
        [{"name": "web", "containerPort": 8080}, {"name": "metrics", "containerPort": 9090}],
        [{"name": "http", "containerPort": 8080}, {"name": "metrics", "containerPort": 9090}],
    ]
)
_main = st.fixed_dictionaries(
    {**_container, "name": st.sampled_from(["web", "app"]), "ports": _ports}, optional=_fields
)
_others = st.fixed_dictionaries({**_container, "name": st.sampled_from(["proxy", "cache"])}, optional=_fields)
_pod = st.fixed_dictionaries(
    {},
    optional={
        "terminationGracePeriodSeconds": st.sampled_from([0, 5, 30, 60, 7200]),
        "enableServiceLinks": st.booleans(),
        "automountServiceAccountToken": st.booleans(),
        "securityContext": _security_contexts.map(
            lambda each: {
                name: value for name, value in each.items() if name in {"runAsUser", "runAsNonRoot", "seccompProfile"}
            }
        ),
        "priorityClassName": st.sampled_from(["pincompute-reserved", "pincompute-on-demand", "gold"]),
        "serviceAccountName": st.sampled_from(["default", "web", "builder"]),
        "hostNetwork": st.booleans(),
        "dnsPolicy": st.sampled_from(["ClusterFirst", "Default"]),
        "nodeSelector": st.just({"disk": "ssd"}),
        "topologySpreadConstraints": st.just([{"maxSkew": 1, "topologyKey": "zone"}]),
        "imagePullSecrets": st.just([{"name": "registry"}]),
        "initContainers": st.lists(_others, max_size=1).map(
            lambda all_: [{**valid(each), "name": f"init-{each['name']}"} for each in all_]
        ),
    },
)
VOLUMES: list[Object] = [
    {"name": "files", "configMap": {"name": "files", "defaultMode": 420}},
    {"name": "key", "secret": {"secretName": "key", "defaultMode": 256}},
    {"name": "scratch", "emptyDir": {}},
]
FILES: Object = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "files"}, "data": {"app.conf": "a"}}


@st.composite
def related_objects(draw: st.DrawFn) -> RelatedObjects:
    containers = [valid(each) for each in (draw(_main), *draw(st.lists(_others, max_size=1)))]
    pod = {**draw(_pod), "containers": draw(st.permutations(containers)), "volumes": VOLUMES}
    labels = {"app": "web"}
    strategy = draw(st.sampled_from([{}, {"rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}}]))
    deployment = {
        "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "shop"},
        "spec": {
            "replicas": draw(st.sampled_from([0, 1, 3])),
            "strategy": strategy,
            "template": {"metadata": {"labels": labels, "annotations": {"scrape": "yes"}}, "spec": pod},
        },
    }
    service = {
        "kind": "Service",
        "metadata": {"name": draw(st.sampled_from(["web", "other"])), "namespace": "shop"},
        "spec": {"selector": labels, "ports": [{"port": draw(st.sampled_from([80, 8080])), "targetPort": 8080}]},
    }
    return RelatedObjects.of(deployment, [service, FILES])


def valid(container: Object) -> Object:
    """The container with probes that refer to existing ports only."""
    ports = container.get("ports", ())
    if not any(each.get("name") == "http" for each in ports):
        probes = {name: each for name, each in container.items() if name.endswith("Probe") and "httpGet" in each}
        numbered = {name: {**each, "httpGet": {**each["httpGet"], "port": 9090}} for name, each in probes.items()}
        return {**container, **numbered}
    return container


@settings(deadline=None)
@given(related_objects())
def test_reports_every_unexpected_difference(found: RelatedObjects) -> None:
    done = import_deployment(found)
    assert done.blockers == ()
    unexpected = [each for each in done.differences if not is_expected(each)]
    assert unexpected == [], done.document


def is_expected(line: str) -> bool:
    return any(line.startswith(each) or (each.startswith(".") and each in line) for each in EXPECTED_DIFFERENCES)


@settings(deadline=None)
@given(related_objects())
def test_document_parses_to_the_imported_workload(found: RelatedObjects) -> None:
    done = import_deployment(found)
    assert parse_resource(read(done.document), "elsewhere") == done.workload


@settings(deadline=None)
@given(related_objects())
def test_document_has_no_redundant_field(found: RelatedObjects) -> None:
    """Leaving out any field of the short form results in another workload, or in an invalid one."""
    done = import_deployment(found)
    spec = done.document["spec"]
    for field in spec.keys() - {"port", "template"}:
        shorter = {**done.document, "spec": {name: spec[name] for name in spec if name != field}}
        with suppress(Refused):
            assert parse_resource(read(shorter), "shop") != done.workload, field


def read(document: Object) -> Document:
    """JSON is YAML."""
    return read_document(msgspec.json.encode(document).decode())
