"""A Deployment that was there before: taken over with the copies that run, while somebody asks it without pause."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from pathlib import Path

import aiohttp
import pytest
import yaml

from busybox import IMAGE
from person import Person, all_gone, asking
from pincompute.api.names import ENGINE, WORKLOAD
from pincompute.engine.platform import Platform
from pincompute.kube.client import Client
from pincompute.kube.kubeconfig import load
from pincompute.kube.resource import DEPLOYMENTS, INGRESSES, NAMESPACES, PODS, REPLICA_SETS, SERVICES, Object, Resource
from pincompute.objects.owners import controller_uid
from real_platform import PATIENCE, kubectl
from shared_platform import SharedPlatform

pytestmark = pytest.mark.cluster

PLACE = "before"
"""A namespace of nobody's project."""
SIMULATED: Object = {
    "nodeSelector": {"pinterest.com/simulated": "true"},
    "tolerations": [{"key": "pinterest.com/simulated", "operator": "Exists"}],
}
SERVING: Object = {
    "securityContext": {"runAsUser": 1000, "runAsNonRoot": True},
    "volumes": [{"name": "pages", "configMap": {"name": "pages"}}],
}


def natives(container: Object, pod: Object, port: int) -> list[Object]:
    """As somebody would have written them who never heard of us."""
    labels = {"app": "web"}
    program = {"name": "web", "ports": [{"containerPort": 8080}], **container}
    return [
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "pages"}, "data": {"index.html": "hello"}},
        {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": "web"},
            "spec": {
                "replicas": 2,
                "selector": {"matchLabels": labels},
                "template": {"metadata": {"labels": labels}, "spec": {"containers": [program], **pod}},
            },
        },
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": "web"},
            "spec": {"selector": labels, "ports": [{"port": port, "targetPort": 8080}]},
        },
        {
            "apiVersion": "networking.k8s.io/v1",
            "kind": "Ingress",
            "metadata": {"name": "web"},
            "spec": {"rules": [{"host": "found.me.localhost", "http": {"paths": [path("web", port)]}}]},
        },
        {
            "apiVersion": "policy/v1",
            "kind": "PodDisruptionBudget",
            "metadata": {"name": "of-web"},
            "spec": {"maxUnavailable": 1, "selector": {"matchLabels": labels}},
        },
    ]


def path(service: str, port: int) -> Object:
    backend = {"service": {"name": service, "port": {"number": port}}}
    return {"path": "/", "pathType": "Prefix", "backend": backend}


def written(folder: Path, objects: list[Object]) -> str:
    file = folder / "natives.yaml"
    file.write_text(yaml.safe_dump_all(objects))
    return str(file)


@pytest.fixture
def place(platform: SharedPlatform) -> Iterator[str]:
    platform.pin("kubectl", "create", "namespace", PLACE)
    yield PLACE
    platform.pin("kubectl", "delete", "pinterestservices", "--all", "--namespace", PLACE)
    platform.pin("kubectl", "delete", "namespace", PLACE)


def seen(platform: SharedPlatform, resource: Resource, name: str = "") -> list[Object]:
    said = platform.pin("kubectl", "get", resource.plural, "--namespace", PLACE, "--output", "json")
    items: list[Object] = json.loads(said)["items"]
    return [each for each in items if not name or each["metadata"]["name"] == name]


def test_a_deployment_becomes_a_workload_with_its_copies(platform: SharedPlatform, place: str, tmp_path: Path) -> None:
    file = written(tmp_path, natives({"image": "web:1"}, SIMULATED, 8081))
    platform.pin("kubectl", "apply", "--namespace", place, "--filename", file)
    platform.pin("kubectl", "rollout", "status", "deployment/web", "--namespace", place)
    helm = "meta.helm.sh/release-name=shop"
    platform.pin("kubectl", "annotate", "deployment", "web", helm, "--namespace", place)
    before = {each["metadata"]["uid"] for each in seen(platform, PODS)}
    (service,) = seen(platform, SERVICES)
    wish = ("import", "deployment/web", "--namespace", place)
    own = str(tmp_path / "web.yaml")

    # Who only looks, or asks what would be done, changes nothing; nor does who is refused.
    platform.pin(*wish, "--output", own)
    platform.pin(*wish, "--adopt", "--dry-run", "--take-over")
    platform.pin(*wish, "--adopt", code=1)
    assert seen(platform, SERVICES) == [service]

    # Whoever was ended after some of it was labelled has changed nothing that runs, and does it once more.
    platform.pin("kubectl", "label", "service", "web", f"{WORKLOAD}=web", "--namespace", place)
    platform.pin(*wish, "--adopt", "--take-over")
    (deployment,) = seen(platform, DEPLOYMENTS)
    (replica_set,) = seen(platform, REPLICA_SETS)
    assert {each["metadata"]["uid"] for each in seen(platform, PODS)} == before
    assert {each["metadata"]["labels"][WORKLOAD] for each in seen(platform, PODS)} == {"web"}
    assert controller_uid(replica_set) == deployment["metadata"]["uid"]
    (taken,) = seen(platform, SERVICES)
    assert taken["metadata"]["uid"] == service["metadata"]["uid"]
    assert taken["spec"]["clusterIP"] == service["spec"]["clusterIP"]
    assert taken["spec"]["selector"] == {WORKLOAD: "web"}
    assert "is paused by import" in platform.pin("why", "web", "--project", place)
    assert "what a workload became" in platform.start(*wish).communicate()[1]

    # Its file, once deployed, makes copies as for any other workload.
    platform.pin("deploy", own, "--project", place)
    assert not {each["metadata"]["uid"] for each in seen(platform, PODS) if is_living(each)} & before


def is_living(pod: Object) -> bool:
    return "deletionTimestamp" not in pod["metadata"]


@pytest.fixture
async def client(real_platform: Platform) -> AsyncIterator[Client]:
    async with Client(load(real_platform.home.kubeconfig), agent="test") as client:
        yield client


@pytest.fixture
async def serving(real_platform: Platform, client: Client, tmp_path: Path) -> AsyncIterator[str]:
    """It answers at found.me.localhost; its address inside is told."""
    command = ["sh", "-c", "trap exit TERM; httpd -f -p 8080 -h /pages & wait"]
    container: Object = {
        "image": IMAGE,
        "command": command,
        "volumeMounts": [{"name": "pages", "mountPath": "/pages"}],
        "readinessProbe": {"httpGet": {"path": "/", "port": 8080}, "periodSeconds": 1},
        "lifecycle": {"preStop": {"sleep": {"seconds": 5}}},
    }
    await client.create(NAMESPACES, {"metadata": {"name": PLACE}}, manager=ENGINE)
    file = written(tmp_path, natives(container, SERVING, 80))
    await kubectl(real_platform, "apply", "--namespace", PLACE, "--filename", file)
    await kubectl(real_platform, "rollout", "status", "deployment/web", "--namespace", PLACE)
    service = await client.get(SERVICES, "web", PLACE)
    yield service["spec"]["clusterIP"]
    await kubectl(real_platform, "delete", "pinterestservices", "--all", "--namespace", PLACE)
    await client.delete(NAMESPACES, PLACE)
    await all_gone(client, NAMESPACES, "", fields=f"metadata.name={PLACE}")


async def answers(person: Person, inside: str) -> None:
    """Everybody on the way there has heard of it."""
    async with asyncio.timeout(PATIENCE):
        while True:
            with suppress(aiohttp.ClientError):
                if await person.ask("found", inside) == (200, "hello"):
                    return


async def test_nobody_who_asks_notices(real_platform: Platform, client: Client, serving: str, tmp_path: Path) -> None:
    person = Person(real_platform, tmp_path)
    before = {each["metadata"]["uid"] for each in (await client.list(PODS, PLACE)).items}
    await answers(person, "")
    await answers(person, serving)
    async with asking(person, "found", serving) as failed:
        await person.pin("import", "deployment/web", "--namespace", PLACE, "--output", "web.yaml", "--adopt")
        assert {each["metadata"]["uid"] for each in (await client.list(PODS, PLACE)).items} == before
        ingress = await client.get(INGRESSES, "web", PLACE)
        assert ingress["metadata"]["labels"][WORKLOAD] == "web"
        file = tmp_path / "web.yaml"
        file.write_text(file.read_text().replace("index.html: hello", "index.html: again"))
        await person.pin("deploy", "web.yaml", "--project", PLACE)
        await person.hears("found", "again", serving)
    assert failed == []
