"""The operator on a degraded cluster: it reports the fault, reconciles the rest, and recovers without a restart."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest
import yaml

from control_plane import ControlPlane
from pincompute import engine
from pincompute.api.names import CLI_MANAGER, ENGINE, OPERATOR
from pincompute.controller.resources import CUSTOM_RESOURCES
from pincompute.kube.client import Client
from pincompute.kube.errors import ApiError
from pincompute.kube.resource import (
    CLUSTER_ROLE_BINDINGS,
    CLUSTER_ROLES,
    CRDS,
    DEPLOYMENTS,
    EVENTS,
    NAMESPACES,
    SERVICES,
)
from pincompute.objects.content import Object
from pincompute.operator.health import health_report
from pincompute.operator.manager import ControllerManager
from pincompute.planning.notable_events import DRIFT_REVERTED
from real_platform import WAIT_TIMEOUT_S, wait_until
from running_operator import TEST_CLUSTER, OperatedCluster, OperatorActivity, operated_cluster
from tcp_forwarder import TcpForwarder

pytestmark = pytest.mark.cluster

PINTEREST_SERVICES = CUSTOM_RESOURCES["PinterestService"]
RETRIES = 3
MAX_REQUESTS_PER_RETRY = 3
REQUESTS_PER_WATCH = 5
MIN_TIME_S = 1.0
"""With backoff, so many requests of each watch take longer than this."""
MAX_REQUESTS_BEFORE_KILL = 120
"""About two dozen watches, and several writes for each of the eight workloads."""


async def test_reports_terminating_namespace_and_retries_seldom(plane: ControlPlane) -> None:
    async with operated_cluster(plane) as operated:
        await operated.write()
        await operated.wait_for_reason("Progressing", 1)
        await operated.wait_settled()
        # No namespace controller runs operated, so the namespace stays in the phase Terminating.
        await operated.client.delete(NAMESPACES, operated.project)
        await operated.client.delete(SERVICES, "hello", operated.project)
        summary = await operated.wait_for_reason("ProjectTerminating", 1)
        assert f"namespace {operated.project} is being deleted" in summary.message
        stats, loop = operated.operator.request_stats, operated.manager.loop
        requests, passes = stats.requests.total(), loop.pass_count
        await operated.activity.wait_for(lambda: loop.pass_count >= passes + RETRIES)
        # The passes are retries with backoff, and each of them gives up at the first refusal.
        assert stats.requests.total() - requests <= RETRIES * MAX_REQUESTS_PER_RETRY


@asynccontextmanager
async def operator_role(plane: ControlPlane, without: str) -> AsyncGenerator[tuple[Client, Object]]:
    """Gives the operator its role without one resource; yields the full role, to be restored."""
    documents = list(yaml.safe_load_all((Path(engine.__file__).parent / "manifests" / "access.yaml").read_text()))
    role = next(each for each in documents if each["metadata"]["name"] == OPERATOR and each["kind"] == "ClusterRole")
    binding = next(
        each for each in documents if each["metadata"]["name"] == OPERATOR and each["kind"] == "ClusterRoleBinding"
    )
    less = {**role, "rules": [each for each in role["rules"] if without not in each["resources"]]}
    async with Client(plane.access(), agent="tests") as client:
        await client.apply(less, CLUSTER_ROLES, manager=ENGINE)
        await client.apply(binding, CLUSTER_ROLE_BINDINGS, manager=ENGINE)
        yield client, role


async def test_reports_missing_permission_and_recovers_without_restart(plane: ControlPlane) -> None:
    async with (
        operator_role(plane, "ingresses") as (client, full_role),
        operated_cluster(plane, plane.access(OPERATOR, ())) as operated,
    ):
        await operated.write()
        summary = await operated.wait_for_reason("RightsMissing", 1)
        assert "ingresses.networking.k8s.io is forbidden" in summary.message
        # The other natives are created all the same.
        await operated.client.get(DEPLOYMENTS, "hello", operated.project)
        assert "Ingress: ingresses.networking.k8s.io is forbidden" in health_report(operated.manager)
        await client.apply(full_role, CLUSTER_ROLES, manager=ENGINE)
        await operated.wait_for_reason("Progressing", 1)
        await operated.natives()
        # The next retry of the watch succeeds, which triggers a pass of every workload.
        await operated.activity.wait_for(lambda: "Ingress" not in health_report(operated.manager))


@asynccontextmanager
async def without_spec_schema(client: Client) -> AsyncGenerator[None]:
    """Removes the schema of the spec, as in an older version of the CRD."""
    name = f"{PINTEREST_SERVICES.plural}.{PINTEREST_SERVICES.group}"
    path = "/spec/versions/0/schema/openAPIV3Schema/properties/spec"
    now = await client.get(CRDS, name)
    free = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    rules = {"op": "remove", "path": "/spec/versions/0/schema/openAPIV3Schema/x-kubernetes-validations"}
    schema = now["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    patches = [{"op": "replace", "path": path, "value": free}]
    if "x-kubernetes-validations" in schema:
        patches.append(rules)
    await client.patch(CRDS, name, "", patches, style="json", manager=ENGINE)
    try:
        yield
    finally:
        back = [{"op": "replace", "path": "/spec/versions/0/schema/openAPIV3Schema", "value": schema}]
        await client.patch(CRDS, name, "", back, style="json", manager=ENGINE)


async def create_undecodable(operated: OperatedCluster, name: str) -> None:
    """Creates a resource that our types cannot decode. Until the new schema is in effect, the server rejects it."""
    body: Object = {"metadata": {"name": name, "namespace": operated.project}, "spec": {"image": 7, "formerly": True}}
    async with asyncio.timeout(WAIT_TIMEOUT_S):
        while True:
            # There is no event for the moment at which a schema takes effect. Each attempt is a request, and paces
            # itself.
            with suppress(ApiError):
                await operated.client.create(PINTEREST_SERVICES, body, manager=CLI_MANAGER)
                return


async def test_reports_undecodable_spec_and_reconciles_others(plane: ControlPlane) -> None:
    async with operated_cluster(plane) as operated:
        async with without_spec_schema(operated.client):
            await create_undecodable(operated, "old")
            seen = await wait_until(operated.client, PINTEREST_SERVICES, operated.project, _has_conditions, "old")
            conditions = seen["status"]["conditions"]
            assert [(each["type"], each["status"], each["reason"]) for each in conditions] == [
                ("Ready", "Unknown", "SpecUndecodable")
            ]
            assert "PinterestService old cannot be read: " in conditions[0]["message"]
        await operated.write()
        await operated.wait_for_reason("Progressing", 1)
        await operated.wait_settled()
        # Recreated with a valid spec, it is reconciled like any other.
        good: Object = {
            "metadata": {"name": "old", "namespace": operated.project},
            "spec": {"image": "old:1", "port": 80},
        }
        await operated.client.delete(PINTEREST_SERVICES, "old", operated.project)
        await operated.client.create(PINTEREST_SERVICES, good, manager=CLI_MANAGER)
        await wait_until(operated.client, DEPLOYMENTS, operated.project, bool, "old")


def _has_conditions(workload: Object) -> bool:
    return bool(workload.get("status", {}).get("conditions"))


async def test_backs_off_while_the_server_is_away_and_catches_up(
    plane: ControlPlane,
) -> None:
    async with (
        TcpForwarder(plane.port) as forwarder,
        operated_cluster(plane, plane.access(port=forwarder.port)) as operated,
    ):
        await operated.write()
        await operated.wait_for_reason("Progressing", 1)
        await operated.wait_settled()
        await forwarder.cut()
        await operated.write(image="hello:2")
        stats, watches = operated.operator.request_stats, len(operated.manager.cache.ages_s())
        requests, began = stats.requests.total(), time.monotonic()
        await operated.activity.wait_for(lambda: stats.requests.total() - requests >= REQUESTS_PER_WATCH * watches)
        assert time.monotonic() - began > MIN_TIME_S
        forwarder.restore()
        await operated.wait_for_reason("Progressing", 2)
        _, deployment, _ = await operated.natives()
        assert deployment["spec"]["template"]["spec"]["containers"][0]["image"] == "hello:2"


async def test_killed_operators_do_not_change_the_result_of_a_rollout(plane: ControlPlane) -> None:
    async with operated_cluster(plane) as operated:
        names = [f"hello-{number}" for number in range(8)]
        random_ = random.Random(7)
        for image in ("hello:1", "hello:2"):
            for name in names:
                body: Object = {
                    "metadata": {"name": name, "namespace": operated.project},
                    "spec": {"image": image, "port": 80, "replicas": 0},
                }
                await operated.client.apply(body, PINTEREST_SERVICES, manager=CLI_MANAGER)
            for _ in range(4):
                await run_operator_until_killed(plane, random_.randint(1, MAX_REQUESTS_BEFORE_KILL))
        await operated.wait_settled()
        deployments = (await operated.client.list(DEPLOYMENTS, operated.project)).items
        images = {
            each["metadata"]["name"]: each["spec"]["template"]["spec"]["containers"][0]["image"] for each in deployments
        }
        assert images == dict.fromkeys(names, "hello:2")
        assert len((await operated.client.list(SERVICES, operated.project)).items) == len(names)
        # Several operators reconciled the same workloads, but each event was written once.
        events = (await operated.client.list(EVENTS, operated.project)).items
        assert all(each["reason"] != DRIFT_REVERTED for each in events)
        assert len({each["note"] for each in events}) == len(events)


async def run_operator_until_killed(plane: ControlPlane, requests: int) -> None:
    """Runs a further operator beside the first one, like a former leader that has not noticed; kills it after so many
    requests, or when it has nothing left to do."""
    async with Client(plane.access(), agent="operator") as client:
        manager = ControllerManager(client, TEST_CLUSTER)
        activity = OperatorActivity(manager)
        running = asyncio.create_task(manager.run())

        def is_idle() -> bool:
            return manager.cache.complete and manager.loop.pass_count > 0 and not manager.loop.queue_length

        await activity.wait_for(lambda: client.request_stats.requests.total() >= requests or is_idle())
        running.cancel()
        await asyncio.wait({running})
