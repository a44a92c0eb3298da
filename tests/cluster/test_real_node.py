"""Containers on the real node: DNS, Services, logs, exec, certificates, storage, and complete removal."""

from __future__ import annotations

import asyncio
import os
import signal
import ssl
import subprocess
from collections.abc import AsyncIterator
from contextlib import aclosing
from ipaddress import ip_network
from itertools import count
from typing import Any

import aiohttp
import pytest

from busybox import IMAGE
from pincompute.api.names import DESK, NODE_STATS_ACCOUNT, OPERATOR, SYSTEM_NAMESPACE
from pincompute.base.progress import Progress
from pincompute.engine import processes
from pincompute.engine.down import down
from pincompute.engine.installation.objects import MAXIMAL_CONFIG, RESOURCES, platform_objects
from pincompute.engine.platform import Platform
from pincompute.engine.supervisor import SUPERVISOR
from pincompute.kube.access import Access
from pincompute.kube.account_token import AccountToken
from pincompute.kube.client import Client
from pincompute.kube.errors import ApiError, Forbidden
from pincompute.kube.kubeconfig import load_kubeconfig
from pincompute.kube.kubelet import KubeletAddress, KubeletClient, KubeletUnavailable
from pincompute.kube.resource import (
    DEPLOYMENTS,
    NAMESPACES,
    NODES,
    PERSISTENT_VOLUME_CLAIMS,
    POD_CERTIFICATE_REQUESTS,
    PODS,
    SERVICE_ACCOUNTS,
    SERVICES,
    Object,
)
from pincompute.planning.usage import NOT_MEASURED, UsagePod, workload_usage
from pincompute.platforms.kubernetes.usage import UsageLimits, UsageReader
from pod_certificate_signer import sign_pod_certificate
from real_platform import WAIT_TIMEOUT_S, find_traces, kubectl, start_real_platform, wait_until

pytestmark = pytest.mark.cluster

# kube-proxy learns of ready pods with an unobservable delay; until then connections are refused.
CALL = "until wget -qO- http://web/ 2>/dev/null; do sleep 0.1; done"

_numbers = count(1)


@pytest.fixture
async def namespace(client: Client) -> AsyncIterator[str]:
    name = f"real-{next(_numbers)}"
    await client.create(NAMESPACES, {"metadata": {"name": name}}, manager="test")
    # The API server rejects pods until the default service account exists.
    await wait_until(client, SERVICE_ACCOUNTS, name, bool, "default")
    yield name
    await client.delete(NAMESPACES, name)


async def test_pod_calls_service_by_short_and_full_name(client: Client, namespace: str) -> None:
    await _serve(client, namespace)
    call = f"{CALL} && wget -qO- http://web.{namespace}.svc.cluster.local/"
    assert await _run_pod(client, namespace, _pod("caller", _container(call))) == ["hello", "hello"]


async def test_unknown_name_is_nxdomain(client: Client, namespace: str) -> None:
    asks = "nslookup elsewhere.example || true"
    assert "** server can't find elsewhere.example: NXDOMAIN" in await _run_pod(
        client, namespace, _pod("caller", _container(asks))
    )


async def test_pod_reaches_itself_through_its_service(real_platform: Platform, client: Client, namespace: str) -> None:
    await _serve(client, namespace)
    pod = await _ready_pod(client, namespace)
    # The Service has a single pod, so the answer comes from the caller itself.
    words = ("exec", "--namespace", namespace, pod, "--", "sh", "-c", CALL)
    assert await kubectl(real_platform, *words) == "hello\n"


async def test_service_address_answers_from_host(real_platform: Platform, client: Client, namespace: str) -> None:
    await _serve(client, namespace)
    pod = await _ready_pod(client, namespace)
    await kubectl(real_platform, "exec", "--namespace", namespace, pod, "--", "sh", "-c", CALL)
    address = (await client.get(SERVICES, "web", namespace))["spec"]["clusterIP"]
    async with aiohttp.request("GET", f"http://{address}/") as answer:
        assert await answer.text() == "hello\n"


async def test_unassigned_service_address_refuses_connections(real_platform: Platform) -> None:
    with pytest.raises(ConnectionRefusedError):
        # Addresses in this range are assigned on request only.
        await asyncio.open_connection(str(ip_network(real_platform.service_range)[15]), 80)


async def test_exec_and_logs_through_api_server(real_platform: Platform, client: Client, namespace: str) -> None:
    await _serve(client, namespace)
    pod = await _ready_pod(client, namespace)
    words = ("exec", "--namespace", namespace, pod, "-c", "web", "--")
    assert await kubectl(real_platform, *words, "hostname") == f"{pod}\n"
    assert [line async for line in client.logs(namespace, pod, container="web")] == ["serving"]


async def test_exec_and_port_forward_with_own_client(client: Client, namespace: str) -> None:
    await _serve(client, namespace)
    pod = await _ready_pod(client, namespace)
    script = "read line; echo got $line; echo beside >&2; read line || exit 7"
    async with client.exec(namespace, pod, ["sh", "-c", script], container="web", stdin=True) as execution:
        await execution.write_stdin(b"this\n")
        await execution.close_stdin()
        output = {chunk.stream: chunk.data async for chunk in execution.output()}
    assert (output, execution.exit_code) == ({"stdout": b"got this\n", "stderr": b"beside\n"}, 7)
    with pytest.raises(ApiError, match="no-such-program"):
        async with client.exec(namespace, pod, ["no-such-program"]) as execution:
            assert [chunk async for chunk in execution.output()] == []
    with pytest.raises(ApiError, match="container absent is not valid"):
        async with client.exec(namespace, pod, ["sh"], container="absent"):
            pass
    async with client.port_forward(namespace, pod, 8080) as connection:
        await connection.write(b"GET / HTTP/1.0\r\n\r\n")
        answer = b""
        async with aclosing(connection.chunks()) as pieces:
            async for piece in pieces:
                answer += piece
                if answer.endswith(b"\r\n\r\nhello\n"):
                    break
        assert answer.endswith(b"\r\n\r\nhello\n")
    async with client.port_forward(namespace, pod, 81) as connection:
        # The error is raised by the reader.
        await connection.write(b"GET / HTTP/1.0\r\n\r\n")
        with pytest.raises(ApiError, match="refused"):
            assert [piece async for piece in connection.chunks()] == []


async def test_port_forward_with_kubectl(real_platform: Platform, client: Client, namespace: str) -> None:
    await _serve(client, namespace)
    process = await asyncio.create_subprocess_exec(
        real_platform.programs.kubernetes, "kubectl", "port-forward", "--namespace", namespace, "service/web", ":80",
        env={**os.environ, "KUBECONFIG": str(real_platform.home.kubeconfig)}, stdout=asyncio.subprocess.PIPE,
    )  # fmt: skip
    assert process.stdout is not None
    try:
        # The third word of the first line is the listen address.
        address = (await process.stdout.readline()).decode().split()[2]
        async with aiohttp.request("GET", f"http://{address}/") as answer:
            assert await answer.text() == "hello\n"
    finally:
        process.terminate()
        await process.wait()


async def test_sidecar_serves_its_pod_and_ends_with_it(client: Client, namespace: str) -> None:
    serve = "mkdir /tmp/www && echo beside > /tmp/www/index.html && exec httpd -f -p 9000 -h /tmp/www"
    sidecar = {
        **_container(serve, "side"),
        "restartPolicy": "Always",
        "startupProbe": {"httpGet": {"port": 9000}, "periodSeconds": 1},
    }
    pod = _pod("job", _container("wget -qO- http://127.0.0.1:9000/"))
    pod["spec"]["initContainers"] = [sidecar]
    assert await _run_pod(client, namespace, pod) == ["beside"]


async def test_pod_waits_until_certificate_is_signed(client: Client, namespace: str) -> None:
    pod = _pod("who", _container("cat /certificates/bundle.pem", mounts={"certificates": "/certificates"}))
    source = {"signerName": "example.com/test", "keyType": "ECDSAP256", "credentialBundlePath": "bundle.pem"}
    pod["spec"]["volumes"] = [{"name": "certificates", "projected": {"sources": [{"podCertificate": source}]}}]
    await client.create(PODS, _placed(pod, namespace), manager="test")

    request = await wait_until(client, POD_CERTIFICATE_REQUESTS, namespace, bool)
    assert request["spec"]["podName"] == "who"
    assert (await client.get(PODS, "who", namespace))["status"]["phase"] == "Pending"

    await sign_pod_certificate(client, request)
    await wait_until(client, PODS, namespace, _succeeded, "who")
    lines = [line async for line in client.logs(namespace, "who")]
    assert [line for line in lines if line.startswith("-----BEGIN")] == [
        "-----BEGIN PRIVATE KEY-----",
        "-----BEGIN CERTIFICATE-----",
    ]


async def test_claim_is_bound_and_keeps_data(client: Client, namespace: str) -> None:
    claim = {
        "metadata": {"name": "disk", "namespace": namespace},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Mi"}}},
    }
    await client.create(PERSISTENT_VOLUME_CLAIMS, claim, manager="test")
    for name, command in (("writer", "echo kept > /disk/file"), ("reader", "cat /disk/file")):
        pod = _pod(name, _container(command, mounts={"disk": "/disk"}))
        pod["spec"]["volumes"] = [{"name": "disk", "persistentVolumeClaim": {"claimName": "disk"}}]
        output = await _run_pod(client, namespace, pod)
    assert output == ["kept"]
    assert (await client.get(PERSISTENT_VOLUME_CLAIMS, "disk", namespace))["status"]["phase"] == "Bound"


async def test_missing_image_is_reported_at_once(client: Client, namespace: str) -> None:
    pod = _pod("lost", {**_container("true"), "image": "nowhere/nothing:1"})
    await client.create(PODS, _placed(pod, namespace), manager="test")

    def refused(pod: Object) -> bool:
        containers = pod.get("status", {}).get("containerStatuses", ())
        return any("not found" in each["state"].get("waiting", {}).get("message", "") for each in containers)

    await wait_until(client, PODS, namespace, refused, "lost")


async def test_kubelet_rejects_requests_without_certificate(real_platform: Platform) -> None:
    command = ["curl", "--silent", "--cacert", real_platform.authority.bundle, "--write-out", "%{http_code}"]
    url = f"https://{real_platform.node_address}:10250/pods"
    done = await asyncio.to_thread(subprocess.run, [*command, url], check=True, capture_output=True, text=True)
    assert done.stdout == "Unauthorized401"


async def test_kubelet_measures_pods_for_the_desk_and_refuses_others(
    real_platform: Platform, client: Client, namespace: str
) -> None:
    pod = _pod("busy", _container("while :; do :; done"))
    await client.create(PODS, _placed(pod, namespace), manager="test")
    await wait_until(client, PODS, namespace, lambda seen: seen["status"]["phase"] == "Running", "busy")
    # Read here, as the label that pods of workloads have is reserved for these.
    pods: list[UsagePod] = (await client.list(PODS, namespace, type=UsagePod)).items
    desk = load_kubeconfig(real_platform.kubeconfig_of(DESK))
    async with Client(desk, agent="test") as desk_client, asyncio.timeout(WAIT_TIMEOUT_S):
        # Nothing is kept, as the first measurement comes some seconds after the start.
        reader = UsageReader(desk_client, limits=UsageLimits(node_timeout_s=30, request_timeout_s=30, max_age_s=0))
        while not (usage := workload_usage("busy", pods, await reader.stats_of_nodes(pods))).cpu.used:
            assert usage.note.startswith(NOT_MEASURED) or usage.cpu.used == 0, usage
            await asyncio.sleep(0.5)
    assert (usage.running, usage.cpu.unknown, usage.note) == (1, 0, "")
    assert 0 < (usage.memory.used or 0) < 2**30
    # The operator has no right to it, though the node knows its certificate.
    operator = KubeletClient(load_kubeconfig(real_platform.kubeconfig_of(OPERATOR)))
    with pytest.raises(KubeletUnavailable, match="get of nodes/stats is missing"):
        await operator.read_stats(KubeletAddress(real_platform.node_address, 10250))


async def test_kubelet_accepts_the_token_of_a_desk_in_a_pod_for_measurements_only(
    real_platform: Platform, client: Client
) -> None:
    """The desk's pod has the account of `pin install`, which this platform lacks."""
    names = {("ServiceAccount", DESK), *((each, NODE_STATS_ACCOUNT) for each in RESOURCES)}
    objects = [each for each in platform_objects(MAXIMAL_CONFIG) if (each["kind"], each["metadata"]["name"]) in names]
    for each in objects:
        await client.apply(each, RESOURCES[each["kind"]], manager="test")
    admin, address = client.access, KubeletAddress(real_platform.node_address, 10250)
    token = await AccountToken(client, SYSTEM_NAMESPACE, DESK).read()
    access = Access(admin.server, authority=admin.authority, token=token, in_pod=True)
    async with Client(access, agent="test") as desk:
        limited = AccountToken(desk, SYSTEM_NAMESPACE, NODE_STATS_ACCOUNT)
        async with asyncio.timeout(WAIT_TIMEOUT_S):
            stats = await _read_when_allowed(KubeletClient(access, limited.read), address)
        assert b'"podRef"' in stats
        with pytest.raises(Forbidden):
            await AccountToken(desk, SYSTEM_NAMESPACE, DESK).read()
        shown = await limited.read()
    # What a node that is taken over can do with the token.
    async with Client(Access(admin.server, authority=admin.authority, token=shown), agent="test") as node:
        for resource in (PODS, NODES, SERVICE_ACCOUNTS):
            with pytest.raises(Forbidden):
                await node.list(resource, SYSTEM_NAMESPACE if resource.namespaced else "")
    trust = ssl.create_default_context(cafile=real_platform.authority.bundle)
    async with aiohttp.ClientSession(headers={"Authorization": f"Bearer {shown}"}) as http:
        for path in ("pods", "logs/", "exec/x/y/z", "configz"):
            async with http.get(f"https://{address.host}:{address.port}/{path}", ssl=trust) as response:
                assert response.status == 403
    for each in objects:
        place = each["metadata"].get("namespace", "")
        await client.delete(RESOURCES[each["kind"]], each["metadata"]["name"], place)


async def _read_when_allowed(kubelet: KubeletClient, address: KubeletAddress) -> bytes:
    """The summary, once the rights of new roles have spread."""
    while True:
        try:
            return await kubelet.read_stats(address)
        except KubeletUnavailable as error:
            if "missing" not in str(error):
                raise
            await asyncio.sleep(0.2)


async def test_node_has_label_and_no_taints(real_platform: Platform, client: Client) -> None:
    node = await client.get(NODES, real_platform.node_name)
    assert node["metadata"]["labels"]["pinterest.com/simulated"] == "false"
    assert node["spec"].get("taints", []) == []


async def test_removal_after_sigkill_leaves_no_traces(
    real_platform: Platform, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """`real_platform` runs at the same time, which shows that removing one platform does not affect another."""
    rules = _rules()
    platform = await asyncio.to_thread(start_real_platform, "other", tmp_path_factory.mktemp("other"))
    try:
        assert platform.network_slot != real_platform.network_slot
        seen = await _traces_of_work(platform)
        assert all(kind in seen for kind in ("process", "mount", "container", "/var/log/containers", "/run/netns"))
        await asyncio.to_thread(_kill, platform)
    finally:
        await asyncio.to_thread(down, platform.home, Progress(), purge=True)

    assert find_traces(platform) == []
    assert not platform.home.root.exists()
    assert _rules() == rules
    assert "control group" in " ".join(find_traces(real_platform))


async def _traces_of_work(platform: Platform) -> str:
    async with Client(load_kubeconfig(platform.home.kubeconfig), agent="test") as client:
        await wait_until(client, SERVICE_ACCOUNTS, "default", bool, "default")
        await _serve(client, "default")
    return " ".join(find_traces(platform))


def _kill(platform: Platform) -> None:
    """Kill all processes at once with SIGKILL."""
    # The supervisor first, so that it restarts none of the others.
    ours = sorted(processes.find_marked(platform.home), key=lambda process: process.part != SUPERVISOR)
    for process in ours:
        os.kill(process.pid, signal.SIGKILL)
    processes.stop(ours)


def _rules() -> list[str]:
    """Rules of the host's firewall, without counters and timestamps."""
    done = subprocess.run(["iptables-save"], check=True, capture_output=True, text=True)
    return [line for line in done.stdout.splitlines() if not line.startswith(("#", ":"))]


async def _serve(client: Client, namespace: str) -> None:
    """Create a Deployment with one pod that answers `hello`, and its Service."""
    serve = "mkdir /tmp/www && echo hello > /tmp/www/index.html && echo serving && exec httpd -f -p 8080 -h /tmp/www"
    probe = {"readinessProbe": {"httpGet": {"port": 8080}, "periodSeconds": 1}}
    labels = {"app": "web"}
    place = {"name": "web", "namespace": namespace}
    containers = [{**_container(serve, "web"), **probe}]
    template = {
        "metadata": {"labels": labels},
        "spec": {"terminationGracePeriodSeconds": 0, "containers": containers},
    }
    deployment = {"metadata": place, "spec": {"selector": {"matchLabels": labels}, "template": template}}
    service = {"metadata": place, "spec": {"selector": labels, "ports": [{"port": 80, "targetPort": 8080}]}}
    await client.create(DEPLOYMENTS, deployment, manager="test")
    await client.create(SERVICES, service, manager="test")
    await wait_until(
        client, DEPLOYMENTS, namespace, lambda seen: seen.get("status", {}).get("availableReplicas"), "web"
    )


async def _ready_pod(client: Client, namespace: str) -> str:
    listing = await client.list(PODS, namespace, labels="app=web")
    name: str = listing.items[0]["metadata"]["name"]
    return name


async def _run_pod(client: Client, namespace: str, pod: Object) -> list[str]:
    """Run a pod to completion and return its output; it must succeed."""
    name = pod["metadata"]["name"]
    await client.create(PODS, _placed(pod, namespace), manager="test")
    await wait_until(client, PODS, namespace, _succeeded, name)
    return [line async for line in client.logs(namespace, name, container="main")]


def _succeeded(pod: Object) -> bool:
    assert pod["status"]["phase"] != "Failed", pod["status"]
    return pod["status"]["phase"] == "Succeeded"


def _pod(name: str, *containers: Object) -> Object:
    spec = {"restartPolicy": "Never", "terminationGracePeriodSeconds": 0, "containers": list(containers)}
    return {"metadata": {"name": name}, "spec": spec}


def _placed(pod: Object, namespace: str) -> Object:
    return {**pod, "metadata": {**pod["metadata"], "namespace": namespace}}


def _container(command: str, name: str = "main", mounts: dict[str, str] | None = None) -> dict[str, Any]:
    paths = [{"name": volume, "mountPath": path} for volume, path in (mounts or {}).items()]
    return {"name": name, "image": IMAGE, "command": ["sh", "-c", command], "volumeMounts": paths}
