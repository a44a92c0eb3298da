"""The model is kept honest: requests of the kinds that the operator sends, to it and to a real API server."""

from __future__ import annotations

import random
import secrets
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

import pytest
from simulation.fields import read
from simulation.line import Life, Line
from simulation.server import Server
from simulation.store import Store

from control_plane import ControlPlane
from pincompute.api.names import OPERATOR, WORKLOAD
from pincompute.controller.resources import NOUNS
from pincompute.kube.access import Access
from pincompute.kube.client import Client
from pincompute.kube.errors import ApiError
from pincompute.kube.resource import (
    CLAIMS,
    CONFIG_MAPS,
    DEPLOYMENTS,
    JOBS,
    LEASES,
    NAMESPACES,
    SERVICE_ACCOUNTS,
    SERVICES,
    STATEFUL_SETS,
    Object,
    Resource,
)
from workloads import cluster

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
    CLAIMS,
    NOUNS["PinterestService"],
    LEASES,
)
NAMES = ("a", "b")
MANAGERS = (OPERATOR, OPERATOR, OPERATOR, "kubectl")


class Said(NamedTuple):
    """What came back: how it was answered, and the object."""

    code: int
    reason: str
    object: Any = None


class Pair:
    """The same request to both, with the identities that each of them gave."""

    def __init__(self, real: Client, model: Client, namespace: str) -> None:
        self._clients = (real, model)
        self._namespace = namespace
        self._known: list[dict[tuple[Resource, str], Object]] = [{}, {}]

    async def ask(self, operation: str, resource: Resource, name: str, body: Any, manager: str) -> tuple[Said, Said]:
        told = [await self._one(side, operation, resource, name, body, manager) for side in (0, 1)]
        return told[0], told[1]

    async def _one(  # noqa: PLR0917  (a request's words)
        self, side: int, operation: str, resource: Resource, name: str, body: Any, manager: str
    ) -> Said:
        client, known = self._clients[side], self._known[side]
        before = known.get((resource, name), {})
        whole = _with(_placed(body, name, self._namespace), operation, before)
        try:
            match operation.split()[0]:
                case "create":
                    found = await client.create(resource, whole, manager=manager)
                case "apply":
                    force = "weakly" not in operation
                    found = await client.apply(whole, resource, manager=manager, force=force)
                case "status":
                    found = await client.apply(whole, resource, manager=manager, subresource="status")
                case "merge":
                    found = await client.patch(resource, name, self._namespace, whole, style="merge", manager=manager)
                case "own":
                    found = await self._own(client, resource, name, manager)
                case "delete":
                    uid = before.get("metadata", {}).get("uid", "") if "uid" in operation else ""
                    await client.delete(resource, name, self._namespace, uid=_other(uid, operation))
                    return Said(200, "")
                case _:
                    found = await client.get(resource, name, self._namespace)
        except ApiError as error:
            return Said(error.status, error.reason)
        known[resource, name] = found
        return Said(200, "", found)

    async def _own(self, client: Client, resource: Resource, name: str, manager: str) -> Object:
        """As the operator makes what it posted its own."""
        found = await client.get(resource, name, self._namespace)
        for index, entry in enumerate(found["metadata"].get("managedFields", ())):
            if entry["manager"] == manager and entry["operation"] == "Update":
                body = [
                    {"op": "test", "path": "/metadata/resourceVersion", "value": found["metadata"]["resourceVersion"]},
                    {"op": "replace", "path": f"/metadata/managedFields/{index}/operation", "value": "Apply"},
                ]
                return await client.patch(resource, name, self._namespace, body, style="json", manager=manager)
        return found


def _placed(body: Object, name: str, namespace: str) -> Object:
    return {**body, "metadata": {**body.get("metadata", {}), "name": name, "namespace": namespace}}


def _with(body: Object, operation: str, before: Object) -> Object:
    """Fenced by the identity or the revision that was last seen, or by another."""
    metadata = before.get("metadata", {})
    if "uid" in operation and metadata:
        body["metadata"]["uid"] = _other(metadata["uid"], operation)
    if "revision" in operation and metadata:
        body["metadata"]["resourceVersion"] = metadata["resourceVersion"] if "other" not in operation else "1"
    return body


def _other(uid: str, operation: str) -> str:
    return "00000000-0000-4000-8000-00000000abcd" if uid and "other" in operation else uid


OPERATIONS = (
    "create", "create", "apply", "apply", "apply uid", "apply uid", "apply other uid", "apply weakly", "apply revision",
    "apply other revision", "own", "own", "merge", "merge revision", "merge other revision", "merge other uid",
    "status", "get", "delete", "delete uid", "delete other uid",
)  # fmt: skip


def draw(chance: random.Random, resource: Resource) -> Object:
    """An object of a kind, as ours are: some of it may be there or not."""
    labels = {WORKLOAD: "a", **({"more": chance.choice("xy")} if chance.random() < 0.5 else {})}
    annotations = {f"n{each}": chance.choice("12") for each in range(3) if chance.random() < 0.5}
    metadata: Object = {"labels": labels} | ({"annotations": annotations} if annotations else {})
    return {"metadata": metadata, **BODIES[resource.kind](chance)}


def _template(chance: random.Random, *, ends: bool = False) -> Object:
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
    return {"metadata": {"labels": {WORKLOAD: "a"}}, "spec": spec}


def _service(chance: random.Random) -> Object:
    ports = [{"name": "http", "port": 80, "targetPort": chance.choice([1, 2]), "protocol": "TCP"}]
    if chance.random() < 0.4:
        ports.append({"name": "more", "port": chance.choice([90, 91]), "targetPort": 3, "protocol": "TCP"})
    return {"spec": {"selector": {WORKLOAD: chance.choice("ab")}, "ports": ports}}


def _deployment(chance: random.Random) -> Object:
    spec: Object = {"selector": {"matchLabels": {WORKLOAD: "a"}}, "template": _template(chance)}
    return {"spec": {**spec, "replicas": chance.randint(0, 3), "minReadySeconds": chance.randint(1, 2)}}


def _stateful_set(chance: random.Random) -> Object:
    found = _deployment(chance)
    found["spec"]["serviceName"] = chance.choice("aaab")
    return found


def _job(chance: random.Random) -> Object:
    fixed = random.Random(chance.choice([1, 1, 1, 2]))
    return {"spec": {"parallelism": chance.randint(1, 3), "completions": 3, "template": _template(fixed, ends=True)}}


def _claim(chance: random.Random) -> Object:
    size = chance.choice(["1Gi", "1Gi", "2Gi"])
    return {"spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": size}}}}


def _ours(chance: random.Random) -> Object:
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
    "Service": _service,
    "Deployment": _deployment,
    "StatefulSet": _stateful_set,
    "Job": _job,
    "PersistentVolumeClaim": _claim,
    "PinterestService": _ours,
    "Lease": lambda chance: {"spec": {"holderIdentity": chance.choice("ab")}},
}


@asynccontextmanager
async def pair(plane: ControlPlane) -> AsyncGenerator[Pair]:
    namespace = f"t-{secrets.token_hex(4)}"
    store = Store()
    model = Client(Access(server="https://model"), "tests", transport=Line(Server(store), Life()))
    async with cluster(plane) as real:
        for client in (real, model):
            await client.create(NAMESPACES, {"metadata": {"name": namespace}}, manager="tests")
        yield Pair(real, model, namespace)


def essence(said: Object, sent: set[str]) -> Object:
    """What can be compared: only fields that somebody has ever said, as the real one adds its own defaults."""
    metadata = said["metadata"]
    flat = {path: value for path, value in _flat(said, "") if path in sent}
    managers = {
        (each["manager"], each["operation"], each.get("subresource", ""))
        for each in metadata.get("managedFields", ())
        if read(each["fieldsV1"])
    }
    return {**flat, "managers": managers, "generation": metadata.get("generation", 0)}


def _flat(value: Any, path: str) -> Any:
    if isinstance(value, dict):
        for name, each in value.items():
            yield from _flat(each, f"{path}.{name}")
    elif isinstance(value, list):
        for index, each in enumerate(value):
            yield from _flat(each, f"{path}[{each['name'] if isinstance(each, dict) and 'name' in each else index}]")
    elif value is not None:
        yield path, value


@pytest.mark.parametrize("seed", SEEDS)
async def test_both_answer_the_same(plane: ControlPlane, seed: int) -> None:
    chance = random.Random(seed)
    sent: dict[Resource, set[str]] = {each: set() for each in KINDS}
    wrong: dict[tuple[Resource, str], str] = {}
    async with pair(plane) as both:
        for number in range(REQUESTS):
            resource, name = chance.choice(KINDS), chance.choice(NAMES)
            operation, manager = chance.choice(OPERATIONS), chance.choice(MANAGERS)
            body = draw(chance, resource)
            if operation == "status":
                body = {"status": body.get("status", {})}
            # Once they differ, what follows would only tell of it again.
            if (resource, name) in wrong or (operation == "status" and resource not in NOUNS.values()):
                continue
            sent[resource] |= {path for path, _ in _flat(body, "")}
            real, model = await both.ask(operation, resource, name, body, manager)
            if said := difference(real, model, sent[resource]):
                words = f"request {number}: {operation} {resource.plural} {name} by {manager}"
                wrong[resource, name] = f"{words}: {said}: {body}"
    assert not wrong, "\n".join(wrong.values())


def difference(real: Said, model: Said, sent: set[str]) -> str:
    if (model.code, model.reason) != (real.code, real.reason):
        return f"the model answers {model.code} {model.reason}, the real one {real.code} {real.reason}"
    if real.object is None:
        return ""
    is_, wanted = essence(model.object, sent), essence(real.object, sent)
    other = [name for name in sorted({*is_, *wanted}) if is_.get(name) != wanted.get(name)]
    return "; ".join(f"{name} is {is_.get(name)}, not {wanted.get(name)}" for name in other)
