"""An existing Deployment is imported and adopted with its running pods, and no request fails."""

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
from cli_user import CliUser, continuous_requests, wait_all_gone
from pincompute.api.names import ENGINE, PROJECT_LABEL, WORKLOAD_LABEL
from pincompute.engine.platform import Platform
from pincompute.kube.client import Client
from pincompute.kube.kubeconfig import load_kubeconfig
from pincompute.kube.resource import (
    CRON_JOBS,
    DEPLOYMENTS,
    INGRESSES,
    NAMESPACES,
    PERSISTENT_VOLUME_CLAIMS,
    PODS,
    REPLICA_SETS,
    SERVICES,
    STATEFUL_SETS,
    Object,
    Resource,
)
from pincompute.objects.owners import controller_uid
from real_platform import WAIT_TIMEOUT_S, kubectl
from shared_platform import SharedPlatform

pytestmark = pytest.mark.cluster

NAMESPACE = "before"
"""A namespace that belongs to no project. Its label lets the operator work in it."""
STATEFUL = "before-stateful"
HOST = f"found.{NAMESPACE}.localhost"
SIMULATED: Object = {
    "nodeSelector": {"pinterest.com/simulated": "true"},
    "tolerations": [{"key": "pinterest.com/simulated", "operator": "Exists"}],
}
SERVING: Object = {
    "securityContext": {"runAsUser": 1000, "runAsNonRoot": True},
    "volumes": [{"name": "pages", "configMap": {"name": "pages"}}],
}


def existing_objects(container: Object, pod: Object, port: int) -> list[Object]:
    """Typical Kubernetes objects of a service that was deployed without PinCompute."""
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
            "spec": {"rules": [{"host": HOST, "http": {"paths": [path("web", port)]}}]},
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


def write_manifest(folder: Path, objects: list[Object]) -> str:
    file = folder / "existing_objects.yaml"
    file.write_text(yaml.safe_dump_all(objects))
    return str(file)


@pytest.fixture
def place(platform: SharedPlatform) -> Iterator[str]:
    platform.pin("kubectl", "create", "namespace", NAMESPACE)
    platform.pin("kubectl", "label", "namespace", NAMESPACE, f"{PROJECT_LABEL}={NAMESPACE}")
    yield NAMESPACE
    platform.pin("kubectl", "delete", "pinterestservices", "--all", "--namespace", NAMESPACE)
    platform.pin("kubectl", "delete", "namespace", NAMESPACE)


def seen(platform: SharedPlatform, resource: Resource, name: str = "") -> list[Object]:
    output = platform.pin("kubectl", "get", resource.plural, "--namespace", NAMESPACE, "--output", "json")
    items: list[Object] = json.loads(output)["items"]
    return [each for each in items if not name or each["metadata"]["name"] == name]


def test_deployment_is_adopted_with_its_pods(platform: SharedPlatform, place: str, tmp_path: Path) -> None:
    file = write_manifest(tmp_path, existing_objects({"image": "web:1"}, SIMULATED, 8081))
    platform.pin("kubectl", "apply", "--namespace", place, "--filename", file)
    platform.pin("kubectl", "rollout", "status", "deployment/web", "--namespace", place)
    helm = "meta.helm.sh/release-name=shop"
    platform.pin("kubectl", "annotate", "deployment", "web", helm, "--namespace", place)
    before = {each["metadata"]["uid"] for each in seen(platform, PODS)}
    (service,) = seen(platform, SERVICES)
    wish = ("import", "deployment/web", "--namespace", place)
    own = str(tmp_path / "web.yaml")

    # Output to a file, a dry run, and a rejected adoption change nothing.
    platform.pin(*wish, code=1)
    accepted = (*wish, "--accept", "memory-limit,requests")
    platform.pin(*accepted, "--output", own)
    platform.pin(*accepted, "--adopt", "--dry-run", "--take-over")
    platform.pin(*accepted, "--adopt", code=1)
    platform.pin(*wish, "--adopt", "--take-over", code=1)
    assert seen(platform, SERVICES) == [service]

    # An adoption that was interrupted after some labels were written can be repeated.
    platform.pin("kubectl", "label", "service", "web", f"{WORKLOAD_LABEL}=web", "--namespace", place)
    platform.pin(*accepted, "--adopt", "--take-over")
    (deployment,) = seen(platform, DEPLOYMENTS)
    (replica_set,) = seen(platform, REPLICA_SETS)
    assert {each["metadata"]["uid"] for each in seen(platform, PODS)} == before
    assert {each["metadata"]["labels"][WORKLOAD_LABEL] for each in seen(platform, PODS)} == {"web"}
    assert controller_uid(replica_set) == deployment["metadata"]["uid"]
    (taken,) = seen(platform, SERVICES)
    assert taken["metadata"]["uid"] == service["metadata"]["uid"]
    assert taken["spec"]["clusterIP"] == service["spec"]["clusterIP"]
    assert taken["spec"]["selector"] == {WORKLOAD_LABEL: "web"}
    assert "paused by import" in platform.pin("why", "web", "--project", place)
    assert "already belongs to a workload" in platform.spawn(*wish).communicate()[1]

    # Deploying the written file replaces the pods, as for any other workload.
    platform.pin("deploy", own, "--project", place)
    assert not {each["metadata"]["uid"] for each in seen(platform, PODS) if is_living(each)} & before


def is_living(pod: Object) -> bool:
    return "deletionTimestamp" not in pod["metadata"]


@pytest.fixture
async def client(real_platform: Platform) -> AsyncIterator[Client]:
    async with Client(load_kubeconfig(real_platform.home.kubeconfig), agent="test") as client:
        yield client


LONG_RUNNING: Object = {
    "image": IMAGE,
    "command": ["sh", "-c", "trap exit TERM; sleep 3600 & wait"],
    "resources": {"requests": {"cpu": "10m", "memory": "16Mi"}, "limits": {"memory": "16Mi"}},
}
USER: Object = {"runAsUser": 1000, "runAsNonRoot": True}


def objects_with_state() -> list[Object]:
    """A StatefulSet with claims, and a CronJob, of which the test starts a run."""
    labels = {"app": "db"}
    program = {"name": "db", "ports": [{"containerPort": 5432}], **LONG_RUNNING}
    claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "10Mi"}}}
    stateful_set = {
        "serviceName": "db",
        "replicas": 2,
        "podManagementPolicy": "Parallel",
        "selector": {"matchLabels": labels},
        "template": {
            "metadata": {"labels": labels},
            "spec": {
                "securityContext": {**USER, "fsGroup": 1000},
                "containers": [{**program, "volumeMounts": [{"name": "data", "mountPath": "/data"}]}],
            },
        },
        "volumeClaimTemplates": [{"metadata": {"name": "data"}, "spec": claim}],
    }
    pod = {"restartPolicy": "Never", "securityContext": USER, "containers": [{"name": "nightly", **LONG_RUNNING}]}
    cron_job = {"schedule": "@yearly", "jobTemplate": {"spec": {"template": {"spec": pod}}}}
    service = {"clusterIP": "None", "selector": labels, "ports": [{"name": "main", "port": 5432}]}
    return [
        {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "db"}, "spec": service},
        {"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "db"}, "spec": stateful_set},
        {"apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": "nightly"}, "spec": cron_job},
    ]


@pytest.fixture
async def stateful(real_platform: Platform, client: Client, tmp_path: Path) -> AsyncIterator[str]:
    """A namespace with a StatefulSet that is ready, and a CronJob with a run in progress."""
    await client.create(
        NAMESPACES, {"metadata": {"name": STATEFUL, "labels": {PROJECT_LABEL: STATEFUL}}}, manager=ENGINE
    )
    file = write_manifest(tmp_path, objects_with_state())
    await kubectl(real_platform, "apply", "--namespace", STATEFUL, "--filename", file)
    await kubectl(real_platform, "create", "job", "run", "--from", "cronjob/nightly", "--namespace", STATEFUL)
    await kubectl(real_platform, "rollout", "status", "statefulset/db", "--namespace", STATEFUL)
    await kubectl(real_platform, "wait", "pods", "--all", "--for", "condition=Ready", "--namespace", STATEFUL)
    yield STATEFUL
    for kind in ("pintereststatefulsets", "pinterestcronjobs"):
        await kubectl(real_platform, "delete", kind, "--all", "--namespace", STATEFUL)
    await client.delete(NAMESPACES, STATEFUL)
    await wait_all_gone(client, NAMESPACES, "", fields=f"metadata.name={STATEFUL}")


async def running(client: Client, resource: Resource) -> dict[str, tuple[str, int]]:
    """Uid and restarts of each object."""
    return {
        each["metadata"]["name"]: (
            each["metadata"]["uid"],
            sum(status["restartCount"] for status in each["status"].get("containerStatuses", ())),
        )
        for each in (await client.list(resource, STATEFUL)).items
    }


async def test_stateful_set_and_cron_job_are_adopted_with_their_pods(
    real_platform: Platform, client: Client, stateful: str, tmp_path: Path
) -> None:
    person = CliUser(real_platform, tmp_path)
    pods, claims = [await running(client, each) for each in (PODS, PERSISTENT_VOLUME_CLAIMS)]
    cron_job = await client.get(CRON_JOBS, "nightly", stateful)
    for native in ("statefulset/db", "cronjob/nightly"):
        await person.pin("import", native, "--namespace", stateful, "--adopt")
    assert [await running(client, each) for each in (PODS, PERSISTENT_VOLUME_CLAIMS)] == [pods, claims]
    stateful_set = await client.get(STATEFUL_SETS, "db", stateful)
    for pod in (await client.list(PODS, stateful, labels=f"{WORKLOAD_LABEL}=db")).items:
        assert controller_uid(pod) == stateful_set["metadata"]["uid"]
    adopted = await client.get(CRON_JOBS, "nightly", stateful)
    assert adopted["metadata"]["uid"] == cron_job["metadata"]["uid"]
    assert adopted["metadata"]["ownerReferences"][0]["kind"] == "PinterestCronJob"
    assert adopted["spec"]["schedule"] == "@yearly"


@pytest.fixture
async def serving(real_platform: Platform, client: Client, tmp_path: Path) -> AsyncIterator[str]:
    """A running Deployment; yields its cluster IP."""
    command = ["sh", "-c", "trap exit TERM; httpd -f -p 8080 -h /pages & wait"]
    container: Object = {
        "image": IMAGE,
        "command": command,
        "volumeMounts": [{"name": "pages", "mountPath": "/pages"}],
        "readinessProbe": {"httpGet": {"path": "/", "port": 8080}, "periodSeconds": 1},
        "lifecycle": {"preStop": {"sleep": {"seconds": 5}}},
    }
    labels = {PROJECT_LABEL: NAMESPACE}
    await client.create(NAMESPACES, {"metadata": {"name": NAMESPACE, "labels": labels}}, manager=ENGINE)
    file = write_manifest(tmp_path, existing_objects(container, SERVING, 80))
    await kubectl(real_platform, "apply", "--namespace", NAMESPACE, "--filename", file)
    await kubectl(real_platform, "rollout", "status", "deployment/web", "--namespace", NAMESPACE)
    service = await client.get(SERVICES, "web", NAMESPACE)
    yield service["spec"]["clusterIP"]
    await kubectl(real_platform, "delete", "pinterestservices", "--all", "--namespace", NAMESPACE)
    await client.delete(NAMESPACES, NAMESPACE)
    await wait_all_gone(client, NAMESPACES, "", fields=f"metadata.name={NAMESPACE}")


async def answers(person: CliUser, inside: str) -> None:
    """Wait until the service answers, through the ingress or at its cluster IP."""
    async with asyncio.timeout(WAIT_TIMEOUT_S):
        while True:
            with suppress(aiohttp.ClientError):
                if await person.http_get(HOST, inside) == (200, "hello"):
                    return


async def test_no_request_fails_during_adoption(
    real_platform: Platform, client: Client, serving: str, tmp_path: Path
) -> None:
    person = CliUser(real_platform, tmp_path)
    before = {each["metadata"]["uid"] for each in (await client.list(PODS, NAMESPACE)).items}
    await answers(person, "")
    await answers(person, serving)
    async with continuous_requests(person, HOST, serving) as failed:
        wish = ("import", "deployment/web", "--namespace", NAMESPACE, "--output", "web.yaml")
        await person.pin(*wish, "--accept", "memory-limit,requests", "--adopt")
        assert {each["metadata"]["uid"] for each in (await client.list(PODS, NAMESPACE)).items} == before
        ingress = await client.get(INGRESSES, "web", NAMESPACE)
        assert ingress["metadata"]["labels"][WORKLOAD_LABEL] == "web"
        file = tmp_path / "web.yaml"
        file.write_text(file.read_text().replace("index.html: hello", "index.html: again"))
        await person.pin("deploy", "web.yaml", "--project", NAMESPACE)
        await person.wait_body(HOST, "again", serving)
    assert failed == []
