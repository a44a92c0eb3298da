"""What was there before us: a Deployment with what leads to it, that a person makes a workload of."""

from __future__ import annotations

import asyncio
from contextlib import suppress

from pincompute.api.change import Resume
from pincompute.base.problem import Refused
from pincompute.controller.importing import hand_over, look, settled
from pincompute.kube.resource import (
    CONFIG_MAPS,
    DEPLOYMENTS,
    DISRUPTION_BUDGETS,
    INGRESSES,
    SERVICES,
    Object,
    Resource,
)
from pincompute.planning.importing import Found, imported
from simulation.person import HOME, TRIES, Person
from simulation.steps import Scenario, Step, changes, deletes, document, writes

LABELS = {"app": "web"}


def scenario() -> Scenario:
    """By the very steps of `pin import --adopt`."""
    own: Object = {"image": "web:1", "port": 8080, "replicas": 3}
    return Scenario(
        "Import",
        (
            Step("somebody has a Deployment", _made),
            Step("it becomes a workload", _adopted, patient=True),
            changes("its copies are made anew", "web", Resume(), patient=True),
            writes("its file is deployed", document("PinterestService", "web", **own), patient=True),
            deletes("delete", "PinterestService", "web"),
        ),
    )


async def _made(person: Person) -> None:
    for resource, value in _natives():
        place = {"metadata": {"namespace": HOME, **value["metadata"]}}
        said = {"apiVersion": resource.api_version, "kind": resource.kind, **value, **place}
        await person.client.create(resource, said, manager="kubectl")


async def _adopted(person: Person) -> None:
    done = imported(await _settled(person), "", 0)
    await hand_over(person.client, done)


async def _settled(person: Person) -> Found:
    """Once its copies are there."""
    for _ in range(TRIES):
        found = await look(person.client, HOME, "web")
        with suppress(Refused):
            settled(found)
            return found
        await asyncio.sleep(1)
    raise AssertionError("what is to be imported has not come to rest")


def _natives() -> tuple[tuple[Resource, Object], ...]:
    """As they are when they have been there for a while: with what a server fills in."""
    program = {
        "name": "web",
        "image": "web:1",
        "ports": [{"containerPort": 8080, "protocol": "TCP"}],
        "volumeMounts": [{"name": "pages", "mountPath": "/pages"}],
    }
    pod = {"containers": [program], "volumes": [{"name": "pages", "configMap": {"name": "pages"}}]}
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
            DISRUPTION_BUDGETS,
            {"metadata": {"name": "of-web"}, "spec": {"maxUnavailable": 1, "selector": {"matchLabels": LABELS}}},
        ),
    )
