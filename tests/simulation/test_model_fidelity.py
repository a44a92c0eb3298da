"""Compares the simulated API server with a real one: both get the same random requests and must answer the same."""

from __future__ import annotations

import random
import secrets
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

import pytest
from simulation.api_server import SimulatedApiServer
from simulation.field_paths import parse_fields_v1
from simulation.object_store import ObjectStore
from simulation.transport import SimulatedProcess, SimulatedTransport

from control_plane import ControlPlane
from pincompute.api.names import OPERATOR, WORKLOAD_LABEL
from pincompute.controller.resources import CUSTOM_RESOURCES
from pincompute.kube.access import Access
from pincompute.kube.client import Client
from pincompute.kube.errors import ApiError
from pincompute.kube.resource import (
    CONFIG_MAPS,
    DEPLOYMENTS,
    JOBS,
    LEASES,
    NAMESPACES,
    PERSISTENT_VOLUME_CLAIMS,
    SERVICE_ACCOUNTS,
    SERVICES,
    STATEFUL_SETS,
    Object,
    Resource,
)
from workloads import cluster_client

pytestmark = pytest.mark.cluster

SEEDS = range(6)
REQUESTS = 100
KINDS = (
    CONFIG_MAPS,
    SERVICE_ACCOUNTS,
    SERVICES,
    DEPLOYMENTS,
    STATEFUL_SETS,
    JOBS,
    PERSISTENT_VOLUME_CLAIMS,
    CUSTOM_RESOURCES["PinterestService"],
    LEASES,
)
NAMES = ("a", "b")
MANAGERS = (OPERATOR, OPERATOR, OPERATOR, "kubectl")


class Response(NamedTuple):
    """Status code, reason and object of a response."""

    code: int
    reason: str
    object: Any = None


class BothServers:
    """Sends each request to both servers, with the uids and revisions that each of them has assigned."""

    def __init__(self, real: Client, model: Client, namespace: str) -> None:
        self._clients = (real, model)
        self._namespace = namespace
        self._known: list[dict[tuple[Resource, str], Object]] = [{}, {}]

    async def send(
        self, operation: str, resource: Resource, name: str, body: Any, manager: str
    ) -> tuple[Response, Response]:
        responses = [await self._send_to_one(side, operation, resource, name, body, manager) for side in (0, 1)]
        return responses[0], responses[1]

    async def _send_to_one(  # noqa: PLR0917  (the fields of a request)
        self, side: int, operation: str, resource: Resource, name: str, body: Any, manager: str
    ) -> Response:
        client, known = self._clients[side], self._known[side]
        before = known.get((resource, name), {})
        sent_body = _with_precondition(_with_name(body, name, self._namespace), operation, before)
        try:
            match operation.split()[0]:
                case "create":
                    found = await client.create(resource, sent_body, manager=manager)
                case "apply":
                    force = "weakly" not in operation
                    found = await client.apply(sent_body, resource, manager=manager, force=force)
                case "status":
                    found = await client.replace(sent_body, resource, manager=manager, subresource="status")
                case "merge":
                    found = await client.patch(
                        resource, name, self._namespace, sent_body, style="merge", manager=manager
                    )
                case "own":
                    found = await self._mark_as_applied(client, resource, name, manager)
                case "delete":
                    uid = before.get("metadata", {}).get("uid", "") if "uid" in operation else ""
                    await client.delete(resource, name, self._namespace, uid=_precondition_uid(uid, operation))
                    return Response(200, "")
                case _:
                    found = await client.get(resource, name, self._namespace)
        except ApiError as error:
            return Response(error.status, error.reason)
        known[resource, name] = found
        return Response(200, "", found)

    async def _mark_as_applied(self, client: Client, resource: Resource, name: str, manager: str) -> Object:
        """Turns the ownership of a created object into that of an apply, as the operator does."""
        found = await client.get(resource, name, self._namespace)
        for index, entry in enumerate(found["metadata"].get("managedFields", ())):
            if entry["manager"] == manager and entry["operation"] == "Update":
                body = [
                    {"op": "test", "path": "/metadata/resourceVersion", "value": found["metadata"]["resourceVersion"]},
                    {"op": "replace", "path": f"/metadata/managedFields/{index}/operation", "value": "Apply"},
                ]
                return await client.patch(resource, name, self._namespace, body, style="json", manager=manager)
        return found


def _with_name(body: Object, name: str, namespace: str) -> Object:
    return {**body, "metadata": {**body.get("metadata", {}), "name": name, "namespace": namespace}}


def _with_precondition(body: Object, operation: str, before: Object) -> Object:
    """Adds the uid or revision that was last seen as a precondition, or a differences one."""
    metadata = before.get("metadata", {})
    if "uid" in operation and metadata:
        body["metadata"]["uid"] = _precondition_uid(metadata["uid"], operation)
    if "revision" in operation and metadata:
        body["metadata"]["resourceVersion"] = metadata["resourceVersion"] if "other" not in operation else "1"
    return body


def _precondition_uid(uid: str, operation: str) -> str:
    return "00000000-0000-4000-8000-00000000abcd" if uid and "other" in operation else uid


OPERATIONS = (
    "create", "create", "apply", "apply", "apply uid", "apply uid", "apply other uid", "apply weakly", "apply revision",
    "apply other revision", "own", "own", "merge", "merge revision", "merge other revision", "merge other uid",
    "status revision", "get", "delete", "delete uid", "delete other uid",
)  # fmt: skip


def draw_object(chance: random.Random, resource: Resource) -> Object:
    """A random object of a kind, with the fields that the operator uses, each of them optional."""
    labels = {WORKLOAD_LABEL: "a", **({"more": chance.choice("xy")} if chance.random() < 0.5 else {})}
    annotations = {f"n{each}": chance.choice("12") for each in range(3) if chance.random() < 0.5}
    metadata: Object = {"labels": labels} | ({"annotations": annotations} if annotations else {})
    return {"metadata": metadata, **BODIES[resource.kind](chance)}


def _draw_template(chance: random.Random, *, ends: bool = False) -> Object:
    container: Object = {"name": "a", "image": f"a:{chance.randint(1, 3)}"}
    if chance.random() < 0.7:
        names = chance.sample(["A", "B", "C"], chance.randint(1, 3))
        container["env"] = [{"name": each, "value": chance.choice("12")} for each in names]
    if chance.random() < 0.5:
        container["ports"] = [{"name": "http", "containerPort": chance.choice([80, 81]), "protocol": "TCP"}]
    if chance.random() < 0.3:
        container["command"] = chance.choice([["x"], ["x", "y"]])
    more = [{"name": "b", "image": "b:1"}] if chance.random() < 0.3 else []
    spec: Object = {"containers": [container, *more]}
    if ends:
        spec["restartPolicy"] = "Never"
    return {"metadata": {"labels": {WORKLOAD_LABEL: "a"}}, "spec": spec}


def _draw_service(chance: random.Random) -> Object:
    ports = [{"name": "http", "port": 80, "targetPort": chance.choice([1, 2]), "protocol": "TCP"}]
    if chance.random() < 0.4:
        ports.append({"name": "more", "port": chance.choice([90, 91]), "targetPort": 3, "protocol": "TCP"})
    return {"spec": {"selector": {WORKLOAD_LABEL: chance.choice("ab")}, "ports": ports}}


def _draw_deployment(chance: random.Random) -> Object:
    spec: Object = {"selector": {"matchLabels": {WORKLOAD_LABEL: "a"}}, "template": _draw_template(chance)}
    return {"spec": {**spec, "replicas": chance.randint(0, 3), "minReadySeconds": chance.randint(1, 2)}}


def _draw_stateful_set(chance: random.Random) -> Object:
    found = _draw_deployment(chance)
    found["spec"]["serviceName"] = chance.choice("aaab")
    return found


def _draw_job(chance: random.Random) -> Object:
    fixed = random.Random(chance.choice([1, 1, 1, 2]))
    return {
        "spec": {"parallelism": chance.randint(1, 3), "completions": 3, "template": _draw_template(fixed, ends=True)}
    }


def _draw_claim(chance: random.Random) -> Object:
    size = chance.choice(["1Gi", "1Gi", "2Gi"])
    return {"spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": size}}}}


def _draw_pinterest_service(chance: random.Random) -> Object:
    spec: Object = {"image": f"a:{chance.randint(1, 3)}", "port": chance.choice([80, 81])}
    if chance.random() < 0.5:
        spec["environment"] = {each: chance.choice("12") for each in "AB" if chance.random() < 0.5}
    status: Object = {"observedGeneration": chance.randint(1, 2), "revision": chance.randint(1, 2)}
    if chance.random() < 0.5:
        status["progress"] = {"wanted": 1, "ready": chance.randint(0, 1)}
    return {"spec": spec, "status": status}


BODIES: dict[str, Any] = {
    "ConfigMap": lambda chance: {"data": {each: chance.choice("12") for each in "ab" if chance.random() < 0.7}},
    "ServiceAccount": lambda chance: {"automountServiceAccountToken": chance.random() < 0.5},
    "Service": _draw_service,
    "Deployment": _draw_deployment,
    "StatefulSet": _draw_stateful_set,
    "Job": _draw_job,
    "PersistentVolumeClaim": _draw_claim,
    "PinterestService": _draw_pinterest_service,
    "Lease": lambda chance: {"spec": {"holderIdentity": chance.choice("ab")}},
}


@asynccontextmanager
async def both_servers(plane: ControlPlane) -> AsyncGenerator[BothServers]:
    namespace = f"t-{secrets.token_hex(4)}"
    store = ObjectStore()
    model = Client(
        Access(server="https://model"),
        "tests",
        transport=SimulatedTransport(SimulatedApiServer(store), SimulatedProcess()),
    )
    async with cluster_client(plane) as real:
        for client in (real, model):
            await client.create(NAMESPACES, {"metadata": {"name": namespace}}, manager="tests")
        yield BothServers(real, model, namespace)


def comparable_part(value: Object, sent: set[str]) -> Object:
    """The comparable part: only fields that were ever sent, because the real server adds defaults."""
    metadata = value["metadata"]
    flat = {path: value for path, value in _flatten(value, "") if path in sent}
    managers = {
        (each["manager"], each["operation"], each.get("subresource", ""))
        for each in metadata.get("managedFields", ())
        if parse_fields_v1(each["fieldsV1"])
    }
    return {**flat, "managers": managers, "generation": metadata.get("generation", 0)}


def _flatten(value: Any, path: str) -> Any:
    if isinstance(value, dict):
        for name, each in value.items():
            yield from _flatten(each, f"{path}.{name}")
    elif isinstance(value, list):
        for index, each in enumerate(value):
            yield from _flatten(each, f"{path}[{each['name'] if isinstance(each, dict) and 'name' in each else index}]")
    elif value is not None:
        yield path, value


@pytest.mark.parametrize("seed", SEEDS)
async def test_simulated_server_answers_like_a_real_one(plane: ControlPlane, seed: int) -> None:
    chance = random.Random(seed)
    sent: dict[Resource, set[str]] = {each: set() for each in KINDS}
    differences: dict[tuple[Resource, str], str] = {}
    async with both_servers(plane) as both:
        for number in range(REQUESTS):
            resource, name = chance.choice(KINDS), chance.choice(NAMES)
            operation, manager = chance.choice(OPERATIONS), chance.choice(MANAGERS)
            body = draw_object(chance, resource)
            if operation == "status revision":
                body = {"status": body.get("status", {})}
            # After a first difference the objects differ anyway.
            if (resource, name) in differences or (
                operation == "status revision" and resource not in CUSTOM_RESOURCES.values()
            ):
                continue
            sent[resource] |= {path for path, _ in _flatten(body, "")}
            real, model = await both.send(operation, resource, name, body, manager)
            if text := difference(real, model, sent[resource]):
                words = f"request {number}: {operation} {resource.plural} {name} by {manager}"
                differences[resource, name] = f"{words}: {text}: {body}"
    assert not differences, "\n".join(differences.values())


def difference(real: Response, model: Response, sent: set[str]) -> str:
    if (model.code, model.reason) != (real.code, real.reason):
        return f"the model answers {model.code} {model.reason}, the real server {real.code} {real.reason}"
    if real.object is None:
        return ""
    is_, wanted = comparable_part(model.object, sent), comparable_part(real.object, sent)
    other = [name for name in sorted({*is_, *wanted}) if is_.get(name) != wanted.get(name)]
    return "; ".join(f"{name} is {is_.get(name)}, not {wanted.get(name)}" for name in other)
