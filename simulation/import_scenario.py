"""The scenario of an import: a user has a Deployment with related objects and turns it into a workload."""

from __future__ import annotations

import asyncio
from contextlib import suppress

from pincompute.api.change import Resume
from pincompute.base.problem import Refused
from pincompute.kube.resource import (
    CONFIG_MAPS,
    DEPLOYMENTS,
    INGRESSES,
    POD_DISRUPTION_BUDGETS,
    SERVICES,
    Object,
    Resource,
)
from pincompute.planning.migration.deployment_import import import_deployment
from pincompute.planning.migration.related_objects import RelatedObjects
from pincompute.platforms.kubernetes.deployment_import import read_native, request_adoption, require_rolled_out
from simulation.scenario_steps import Scenario, ScenarioStep, change_step, delete_step, make_document, write_step
from simulation.user import DEFAULT_PROJECT, MAX_TRIES, SimulatedUser

LABELS = {"app": "web"}


def import_scenario() -> Scenario:
    """Uses the same functions as `pin import --adopt`."""
    own: Object = {"image": "web:1", "port": 8080, "replicas": 3}
    return Scenario(
        "Import",
        (
            ScenarioStep("a Deployment exists", _create_natives),
            ScenarioStep("it is adopted by a workload", _adopt, needs_previous_step=True),
            change_step("its replicas are recreated", "web", Resume(), needs_previous_step=True),
            write_step(
                "its file is deployed", make_document("PinterestService", "web", **own), needs_previous_step=True
            ),
            delete_step("delete", "PinterestService", "web"),
        ),
    )


async def _create_natives(user: SimulatedUser) -> None:
    for resource, value in _natives():
        metadata = {"metadata": {"namespace": DEFAULT_PROJECT, **value["metadata"]}}
        manifest = {"apiVersion": resource.api_version, "kind": resource.kind, **value, **metadata}
        await user.client.create(resource, manifest, manager="kubectl")


async def _adopt(user: SimulatedUser) -> None:
    import_ = import_deployment(await _read_when_rolled_out(user), "", 0)
    await request_adoption(user.client, import_)


async def _read_when_rolled_out(user: SimulatedUser) -> RelatedObjects:
    """Waits until the Deployment is rolled out."""
    for _ in range(MAX_TRIES):
        found = await read_native(user.client, "Deployment", DEFAULT_PROJECT, "web")
        with suppress(Refused):
            require_rolled_out(found)
            return found
        await asyncio.sleep(1)
    raise AssertionError("the Deployment was not rolled out")


def _natives() -> tuple[tuple[Resource, Object], ...]:
    """The Deployment and its related objects, with the defaults that a server fills in."""
    container = {
        "name": "web",
        "image": "web:1",
        "ports": [{"containerPort": 8080, "protocol": "TCP"}],
        "volumeMounts": [{"name": "pages", "mountPath": "/pages"}],
    }
    pod = {"containers": [container], "volumes": [{"name": "pages", "configMap": {"name": "pages"}}]}
    backend = {"service": {"name": "web", "port": {"number": 80}}}
    rule = {"host": "web.me.localhost", "http": {"paths": [{"path": "/", "pathType": "Prefix", "backend": backend}]}}
    return (
        (CONFIG_MAPS, {"metadata": {"name": "pages"}, "data": {"index.html": "hello"}}),
        (
            DEPLOYMENTS,
            {
                "metadata": {"name": "web"},
                "spec": {
                    "replicas": 2,
                    "selector": {"matchLabels": LABELS},
                    "template": {"metadata": {"labels": LABELS}, "spec": pod},
                },
            },
        ),
        (
            SERVICES,
            {"metadata": {"name": "web"}, "spec": {"selector": LABELS, "ports": [{"port": 80, "targetPort": 8080}]}},
        ),
        (INGRESSES, {"metadata": {"name": "web"}, "spec": {"rules": [rule]}}),
        (
            POD_DISRUPTION_BUDGETS,
            {"metadata": {"name": "of-web"}, "spec": {"maxUnavailable": 1, "selector": {"matchLabels": LABELS}}},
        ),
    )
