"""Pod identity on a real node: certificates exist before containers start, and impostors get none."""

from __future__ import annotations

import asyncio
import base64
import json
import subprocess
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from pathlib import Path

import pytest
import yaml
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding

from busybox import IMAGE
from certificate_factory import key_request
from cli_user import CliUser, wait_all_gone
from pincompute.agents.identity.bundle import peer_id
from pincompute.api.names import (
    API_VERSION,
    ENGINE,
    IDENTITY_SIGNER,
    PRIORITY_CLASS_PREFIX,
    RUN_NOW_ANNOTATION,
    SIGNER,
    WORKLOAD_LABEL,
)
from pincompute.base.progress import Progress
from pincompute.controller.resources import CUSTOM_RESOURCES
from pincompute.engine.first_runtime import PARTS_FOLDER
from pincompute.engine.images import own_image, registry
from pincompute.engine.platform import Platform
from pincompute.kube.access import Access
from pincompute.kube.client import Client
from pincompute.kube.errors import Forbidden
from pincompute.kube.resource import (
    CERTIFICATE_SIGNING_REQUESTS,
    CLUSTER_ROLE_BINDINGS,
    CRON_JOBS,
    DEPLOYMENTS,
    JOBS,
    POD_CERTIFICATE_REQUESTS,
    PODS,
    REPLICA_SETS,
    SERVICE_ACCOUNTS,
    Object,
)
from rbac_audit import ApiPermission, audited_events, granted_permissions, list_fallback_permissions, used_permissions
from real_platform import WAIT_TIMEOUT_S, wait_until

pytestmark = pytest.mark.cluster

PROJECT = "who"
NUMBER = "900"
SHOW = """\
cat /run/identity/identity.pem /run/identity/trust.pem
say() { [ -z "$LOG_FOLDER" ] || echo "$1" >> $LOG_FOLDER/train.log; }
say written
trap 'say ended; exit' TERM
sleep $SECONDS_TO_LIVE & wait
"""
SECURITY = {"runAsUser": 1000, "runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}}
SAFE = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
KINDS: dict[str, Object] = {
    "PinterestService": {"port": 8080},
    "PinterestStatefulSet": {"port": 8080},
    "PinterestDaemon": {},
    "PinterestJobSet": {"tasks": 1},
    "PinterestCronJob": {"schedule": "30 3 1 1 *"},
    "PinterestTrainingJob": {},
    "PinterestTrainingJob-tensorflow": {"framework": "tensorflow", "workers": 1},
}
NAMES = {kind: kind.removeprefix("Pinterest").lower() for kind in KINDS}
WEB = NAMES["PinterestService"]
TRAINING = NAMES["PinterestTrainingJob"]
"""Pods of this kind request their certificates themselves."""


@pytest.fixture
async def runtime(real_platform: Platform, client: Client) -> AsyncIterator[None]:
    """The bundled sidecars, applied to the workloads of this project only."""
    async with registry.open_registry(real_platform) as images:
        await own_image.push_variants(images, Progress(), ["pincompute-identity:1", "pincompute-logs:1"])
    parts = [
        yaml.safe_load((PARTS_FOLDER / f"{each}-1.yaml").read_text())
        for each in ("identity", "identity-request", "logs")
    ]
    # Other kinds are covered by other tests.
    parts[-1]["spec"]["serves"]["kinds"] = ["PinterestTrainingJob"]
    for part in parts:
        part["metadata"]["name"] = part["metadata"]["name"].replace("-1", f"-{NUMBER}")
        part["spec"]["serves"]["selector"] = {PROJECT: "tested"}
    roll = {"waves": [100], "pauseSeconds": 0}
    number = {
        "metadata": {"name": NUMBER},
        "spec": {"parts": [each["metadata"]["name"] for each in parts], "roll": roll},
    }
    quota: Object = {"infrastructure": {}, "on-demand": {}}
    project = {"metadata": {"name": PROJECT}, "spec": {"owner": "ann", "review": "open", "quota": quota}}
    made: tuple[tuple[str, Object], ...] = (
        *(("PinterestSidecar", part) for part in parts), ("Runtime", number), ("Project", project)
    )  # fmt: skip
    for kind, body in made:
        await client.create(CUSTOM_RESOURCES[kind], body, manager=ENGINE)
    await wait_until(client, CUSTOM_RESOURCES["Runtime"], "", lambda seen: seen.get("status", {}).get("done"), NUMBER)
    await wait_until(client, CUSTOM_RESOURCES["Project"], "", _is_ready, PROJECT)
    yield
    for kind, body in reversed(made):
        await client.delete(CUSTOM_RESOURCES[kind], body["metadata"]["name"])
    await wait_all_gone(client, PODS, PROJECT)


def _is_ready(project: Object) -> bool:
    return any(each["status"] == "True" for each in project.get("status", {}).get("conditions", ()))


@pytest.mark.usefixtures("runtime")
async def test_identity_of_a_pod_follows_from_its_creator(
    client: Client, real_platform: Platform, tmp_path: Path
) -> None:
    await asyncio.gather(*(_create_workload(client, kind) for kind in KINDS))
    pods = await asyncio.gather(*(_pod_of(client, name) for name in NAMES.values()))
    for name, pod in zip(NAMES.values(), pods, strict=True):
        await _has_valid_certificate(client, real_platform, name, pod, tmp_path)

    await _logs_survive_the_pod(client, CliUser(real_platform, tmp_path))
    await _scheduled_run_has_a_certificate(client, real_platform, tmp_path)

    await _forged_pods_are_rejected(client)
    async with _ann(client, real_platform) as ann:
        await _tokens_are_protected(client, ann, real_platform)
        await _forged_pod_controllers_are_rejected(client, ann)
        await _pods_of_foreign_deployments_get_no_certificate(client, ann)
    await _orphaned_pods_get_no_certificate(client)

    # The signer's permissions to approve and sign are checked by the API server within other requests.
    needed = {ApiPermission(SIGNER, "certificates.k8s.io", "signers", verb) for verb in ("approve", "sign")}
    # No pod here sends more requests than it needs; tests/hostile/test_certificate_requests.py does.
    needed.add(ApiPermission(SIGNER, "certificates.k8s.io", "certificatesigningrequests", "delete"))
    assert (
        granted_permissions([SIGNER]) - used_permissions(real_platform, [SIGNER]) - list_fallback_permissions([SIGNER])
        == needed
    )
    refused = [each for each in audited_events(real_platform, [SIGNER]) if each["responseStatus"]["code"] == 403]
    assert refused == []
    pods = f"system:serviceaccount:{PROJECT}:{TRAINING}"
    asked = {
        ApiPermission(pods, "certificates.k8s.io", "certificatesigningrequests", verb) for verb in ("create", "get")
    }
    assert used_permissions(real_platform, [pods]) == asked


async def _create_workload(client: Client, which: str) -> None:
    kind = which.partition("-")[0]
    ends = kind in {"PinterestJobSet", "PinterestCronJob"}
    metadata: Object = {"name": NAMES[which], "namespace": PROJECT, "labels": {PROJECT: "tested"}}
    if kind == "PinterestCronJob":
        metadata["annotations"] = {RUN_NOW_ANNOTATION: "1"}
    spec = {
        "image": IMAGE,
        "command": ["sh", "-c", SHOW],
        "environment": {"SECONDS_TO_LIVE": "0" if ends else "1000"},
        "template": {"spec": {"securityContext": SECURITY}},
        **KINDS[which],
    }
    await client.create(
        CUSTOM_RESOURCES[kind],
        {"apiVersion": API_VERSION, "kind": kind, "metadata": metadata, "spec": spec},
        manager=ENGINE,
    )


async def _pod_of(client: Client, name: str, begins: str = "") -> Object:
    def started(pod: Object) -> bool:
        states = [each["state"] for each in pod["status"].get("containerStatuses", ())]
        metadata = pod["metadata"]
        ours = metadata["labels"].get(WORKLOAD_LABEL) == name and metadata["name"].startswith(begins)
        return ours and any("running" in state or "terminated" in state for state in states)

    return await wait_until(client, PODS, PROJECT, started)


async def _has_valid_certificate(client: Client, platform: Platform, name: str, pod: Object, folder: Path) -> None:
    """Verify the certificate that the program has printed from its volume."""
    lines = []
    async for line in client.logs(PROJECT, pod["metadata"]["name"], follow=True):
        lines.append(line)
        # Key, certificate, the signer's certificate, and the root.
        if sum(each.startswith("-----END") for each in lines) == 4:
            break
    text = "\n".join(lines)
    assert text.startswith("-----BEGIN PRIVATE KEY-----")
    leaf, between, root = x509.load_pem_x509_certificates(text.partition("-----END PRIVATE KEY-----")[2].encode())
    for file, each in (("leaf", leaf), ("between", between), ("root", root)):
        (folder / file).write_bytes(each.public_bytes(Encoding.PEM))
    words = ("openssl", "verify", "-x509_strict", "-CAfile", "root", "-untrusted", "between", "leaf")
    await asyncio.to_thread(subprocess.run, words, cwd=folder, check=True, capture_output=True)
    identity = peer_id(leaf.public_bytes(Encoding.DER), platform.trust_domain)
    assert str(identity) == f"spiffe://{platform.trust_domain}/{PROJECT}/{name}"

    assert leaf.not_valid_after_utc - leaf.not_valid_before_utc == timedelta(hours=1)
    if name.startswith(TRAINING):
        return
    request = await wait_until(
        client, POD_CERTIFICATE_REQUESTS, PROJECT, lambda each: _asks_for(each, pod["metadata"]["name"])
    )
    begin, renew, end = (datetime.fromisoformat(request["status"][each]) for each in _TIMES)
    assert (begin, end) == (leaf.not_valid_before_utc, leaf.not_valid_after_utc)
    assert abs((renew - begin) / (end - begin) - 0.5) <= 0.05


_TIMES = ("notBefore", "beginRefreshAt", "notAfter")


def _asks_for(request: Object, pod: str) -> bool:
    return request["spec"]["podName"] == pod and bool(request["status"].get("conditions"))


async def _forged_pods_are_rejected(client: Client) -> None:
    """Pods with a workload's label are rejected even from administrators; pods without it are accepted."""
    with pytest.raises(
        Forbidden,
        match=f"{WORKLOAD_LABEL}={WEB} is reserved for pods that the workload {WEB} creates; requested by admin",
    ):
        await client.create(PODS, _pod("forged", labels={WORKLOAD_LABEL: WEB}), manager="test")
    with pytest.raises(
        Forbidden, match=f"account {WEB} is reserved for pods of the workload {WEB}; requested by admin"
    ):
        await client.create(PODS, _pod("forged", account=WEB), manager="test")
    plain = await client.create(PODS, _pod("plain"), manager="test")
    with pytest.raises(Forbidden, match="is reserved for pods that the workload"):
        await _label(client, "plain", {WORKLOAD_LABEL: WEB})
    await _label(client, "plain", {"team": "ads"})
    spec = {
        "signerName": IDENTITY_SIGNER, "podName": "plain", "podUID": plain["metadata"]["uid"],
        "serviceAccountName": "default", "serviceAccountUID": "1", "nodeName": "n", "nodeUID": "1",
        "stubPKCS10Request": base64.b64encode(key_request(ec.generate_private_key(ec.SECP256R1()))).decode(),
    }  # fmt: skip
    request = {"metadata": {"name": "forged", "namespace": PROJECT}, "spec": spec}
    with pytest.raises(Forbidden, match="can be requested by its node only; requested by admin"):
        await client.create(POD_CERTIFICATE_REQUESTS, request, manager="test")
    await client.delete(PODS, "plain", PROJECT)


async def _tokens_are_protected(client: Client, ann: Client, platform: Platform) -> None:
    """Tokens of workloads are not issued to users, and requests with other tokens are denied."""
    pod = (await client.list(PODS, PROJECT, labels=f"{WORKLOAD_LABEL}={WEB}")).items[0]
    for person, name in ((ann, "ann"), (client, "admin")):
        with pytest.raises(
            Forbidden, match=f"tokens of {WEB} are reserved for pods of the workload {WEB}; requested by {name}"
        ):
            await _token(person, WEB, pod)
    with pytest.raises(Forbidden, match="accepts requests with the token of a pod only; requested by admin"):
        await client.create(CERTIFICATE_SIGNING_REQUESTS, _asks(), manager="test")
    await client.create(PODS, _pod("hers"), manager="test")
    hers = await wait_until(client, PODS, PROJECT, lambda seen: seen["spec"].get("nodeName"), "hers")
    token = await _token(ann, "default", hers)
    access = Access(server=platform.server, authority=platform.authority.bundle.read_bytes(), token=token)
    async with Client(access, agent="test") as inside:
        made = await inside.create(CERTIFICATE_SIGNING_REQUESTS, _asks(), manager="test")
        name = made["metadata"]["name"]
        denied = await wait_until(
            client, CERTIFICATE_SIGNING_REQUESTS, "", lambda seen: seen["status"].get("conditions"), name
        )
        (condition,) = denied["status"]["conditions"]
        assert (condition["type"], condition["reason"]) == ("Denied", "IdentityDenied")
        assert "no workload created it" in condition["message"]
        with pytest.raises(Forbidden, match="may use the signer"):
            await inside.create(
                CERTIFICATE_SIGNING_REQUESTS, _asks("kubernetes.io/kube-apiserver-client"), manager="test"
            )
    await client.delete(CERTIFICATE_SIGNING_REQUESTS, name)
    await client.delete(PODS, "hers", PROJECT)


async def _token(client: Client, account: str, pod: Object) -> str:
    bound = {"apiVersion": "v1", "kind": "Pod", "name": pod["metadata"]["name"], "uid": pod["metadata"]["uid"]}
    asked = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"boundObjectRef": bound}}
    path = SERVICE_ACCOUNTS.path(PROJECT, account, "token")
    return str(json.loads(await client.raw("POST", path, body=json.dumps(asked).encode()))["status"]["token"])


def _asks(signer: str = IDENTITY_SIGNER) -> Object:
    key = ec.generate_private_key(ec.SECP256R1())
    request = x509.load_der_x509_csr(key_request(key)).public_bytes(Encoding.PEM)
    usages = ["digital signature", "client auth"]
    spec = {"signerName": signer, "request": base64.b64encode(request).decode(), "usages": usages}
    return {"metadata": {"generateName": "forged-"}, "spec": spec}


async def _forged_pod_controllers_are_rejected(client: Client, ann: Client) -> None:
    workload = _owner(await client.get(CUSTOM_RESOURCES["PinterestService"], WEB, PROJECT), API_VERSION)
    native = _owner(await client.get(DEPLOYMENTS, WEB, PROJECT), DEPLOYMENTS.api_version)
    forged = (
        (DEPLOYMENTS, _deployment("forged"), workload, f"objects of PinterestService {WEB} are created"),
        (SERVICE_ACCOUNTS, _plain("forged"), workload, f"objects of PinterestService {WEB} are created"),
        (REPLICA_SETS, _deployment("forged"), native, f"objects of Deployment {WEB} of the workload {WEB} are created"),
    )
    for resource, body, owner, message in forged:
        body["metadata"]["ownerReferences"] = [owner]
        with pytest.raises(Forbidden, match=f"{message} .* requested by ann"):
            await ann.create(resource, body, manager="ann")
    with pytest.raises(Forbidden, match=f"must not create pods of the workload {WEB}; requested by ann"):
        await ann.create(REPLICA_SETS, _deployment("stray"), manager="ann")
    await ann.create(SERVICE_ACCOUNTS, _plain("hers"), manager="ann")
    (made,) = (await client.list(REPLICA_SETS, PROJECT, labels=f"{WORKLOAD_LABEL}={WEB}")).items
    other = {"spec": {"template": {"spec": {"containers": [{"name": WEB, "image": "hers:1"}]}}}}
    changed = (
        (SERVICE_ACCOUNTS, "hers", {"metadata": {"ownerReferences": [workload]}}),
        (DEPLOYMENTS, WEB, other),
        (REPLICA_SETS, made["metadata"]["name"], other),
    )
    for resource, name, body in changed:
        with pytest.raises(Forbidden, match="requested by ann"):
            await ann.patch(resource, name, PROJECT, body, style="merge", manager="ann")
    # Changes that do not affect pods are not rejected; the operator reverts them.
    await ann.patch(DEPLOYMENTS, WEB, PROJECT, {"metadata": {"labels": {"a": "b"}}}, style="merge", manager="ann")


def _owner(value: Object, version: str) -> Object:
    metadata = value["metadata"]
    kind = "PinterestService" if version == API_VERSION else "Deployment"
    return {"apiVersion": version, "kind": kind, "name": metadata["name"], "uid": metadata["uid"], "controller": True}


async def _scheduled_run_has_a_certificate(client: Client, platform: Platform, folder: Path) -> None:
    """A scheduled run is created by Kubernetes: Job and pod are two levels below the workload."""
    name = NAMES["PinterestCronJob"]
    native = await client.get(CRON_JOBS, name, PROJECT)
    template = native["spec"]["jobTemplate"]
    owner = {**_owner(native, CRON_JOBS.api_version), "kind": "CronJob"}
    metadata = {**template["metadata"], **_plain("due")["metadata"], "ownerReferences": [owner]}
    async with _client_of(platform, "system:serviceaccount:kube-system:cronjob-controller") as clock:
        await clock.create(JOBS, {"metadata": metadata, "spec": template["spec"]}, manager="test")
    pod = await _pod_of(client, name, "due-")
    await _has_valid_certificate(client, platform, name, pod, folder)


async def _pods_of_foreign_deployments_get_no_certificate(client: Client, ann: Client) -> None:
    """Controllers create the pods of a user's Deployment. It may not have the labels or the account of a workload, and
    with the volume alone, its pods get no certificate."""
    pods = await client.list(PODS, PROJECT, labels=f"{WORKLOAD_LABEL}={WEB}")
    template = pods.items[0]
    deployment = _deployment("slipped")
    pod = deployment["spec"]["template"]
    with pytest.raises(Forbidden, match=f"{WORKLOAD_LABEL}={WEB} is reserved for pods that the workload {WEB} creates"):
        await ann.create(DEPLOYMENTS, deployment, manager="ann")
    pod["metadata"]["labels"] = {"app": "slipped"}
    pod["spec"] |= {"serviceAccountName": WEB}
    with pytest.raises(Forbidden, match=f"account {WEB} is reserved for pods of the workload {WEB}; requested by ann"):
        await ann.create(DEPLOYMENTS, deployment, manager="ann")
    del pod["spec"]["serviceAccountName"]
    pod["spec"]["volumes"] = [each for each in template["spec"]["volumes"] if each["name"] == "identity"]
    await ann.create(DEPLOYMENTS, deployment, manager="ann")
    await _is_denied(client, "slipped-", "the workload of its Deployment slipped was deleted")
    await ann.delete(DEPLOYMENTS, "slipped", PROJECT)


async def _orphaned_pods_get_no_certificate(client: Client) -> None:
    await client.delete(CUSTOM_RESOURCES["PinterestService"], WEB, PROJECT, propagation="Orphan")
    await wait_until(client, DEPLOYMENTS, PROJECT, lambda each: not each["metadata"].get("ownerReferences"), WEB)
    for pod in (await client.list(PODS, PROJECT, labels=f"{WORKLOAD_LABEL}={WEB}")).items:
        if pod["metadata"]["name"].startswith(WEB):
            await client.delete(PODS, pod["metadata"]["name"], PROJECT)
    await _is_denied(client, f"{WEB}-", f"the workload of its Deployment {WEB} was deleted")
    await client.delete(DEPLOYMENTS, WEB, PROJECT)


async def _is_denied(client: Client, pod: str, why: str) -> None:
    def denied(request: Object) -> bool:
        conditions = request.get("status", {}).get("conditions", ())
        ours = request["spec"]["podName"].startswith(pod)
        return ours and any(each["type"] == "Denied" for each in conditions)

    request = await wait_until(client, POD_CERTIFICATE_REQUESTS, PROJECT, denied)
    (condition,) = request["status"]["conditions"]
    assert condition["reason"] == "IdentityDenied"
    assert why in condition["message"]
    assert "certificateChain" not in request["status"]


async def _logs_survive_the_pod(client: Client, person: CliUser) -> None:
    """The log sidecar uses the certificate of the other sidecar; --follow gets all lines until the end."""
    async with person.pin_lines("logs", TRAINING, "--follow", "--project", PROJECT) as lines, asyncio.timeout(180):
        heard = [await anext(lines)]
        while heard[-1] != "train.log | written":
            heard.append(await anext(lines))
        await person.pin("delete", TRAINING, "--project", PROJECT)
        assert "train.log | ended" in [line async for line in lines], heard
        await wait_all_gone(client, PODS, PROJECT, labels=f"{WORKLOAD_LABEL}={TRAINING}")
    output = (await person.pin("logs", TRAINING, "--project", PROJECT)).splitlines()
    assert "train.log | written" in output


def _client_of(platform: Platform, user: str) -> Client:
    platform.authority.issue(user)
    access = Access(
        server=platform.server,
        authority=platform.authority.bundle.read_bytes(),
        certificate=platform.authority.certificate(user).read_bytes(),
        key=platform.authority.key(user).read_bytes(),
        context=user,
    )
    return Client(access, agent="test")


@asynccontextmanager
async def _ann(admin: Client, platform: Platform) -> AsyncGenerator[Client]:
    """A user with the role `edit` in the whole cluster."""
    group = "rbac.authorization.k8s.io"
    binding = {
        "metadata": {"name": "ann-edits"},
        "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": "edit"},
        "subjects": [{"apiGroup": group, "kind": "User", "name": "ann"}],
    }
    await admin.create(CLUSTER_ROLE_BINDINGS, binding, manager="test")
    async with _client_of(platform, "ann") as ann:
        async with asyncio.timeout(WAIT_TIMEOUT_S):
            # Until the binding takes effect, requests are rejected with another message.
            while not await _may_list(ann):
                pass
        yield ann
    await admin.delete(CLUSTER_ROLE_BINDINGS, "ann-edits")


async def _may_list(ann: Client) -> bool:
    try:
        await ann.list(PODS, PROJECT)
    except Forbidden:
        return False
    return True


async def _label(client: Client, pod: str, labels: dict[str, str]) -> None:
    await client.patch(PODS, pod, PROJECT, {"metadata": {"labels": labels}}, style="merge", manager="test")


def _plain(name: str) -> Object:
    return {"metadata": {"name": name, "namespace": PROJECT}}


def _pod(name: str, *, labels: dict[str, str] | None = None, account: str = "") -> Object:
    container = {"name": "main", "image": IMAGE, "command": ["true"], "securityContext": SAFE}
    spec: Object = {"containers": [container], "securityContext": SECURITY, "restartPolicy": "Never"}
    # Without a tier nothing runs in a project.
    spec["priorityClassName"] = f"{PRIORITY_CLASS_PREFIX}on-demand"
    return {
        "metadata": {"name": name, "namespace": PROJECT, "labels": labels or {}},
        "spec": {**spec, "serviceAccountName": account} if account else spec,
    }


def _deployment(name: str) -> Object:
    labels = {WORKLOAD_LABEL: WEB, "app": name}
    pod = _pod(name)
    template = {"metadata": {"labels": labels}, "spec": {**pod["spec"], "restartPolicy": "Always"}}
    return {**_plain(name), "spec": {"selector": {"matchLabels": {"app": name}}, "template": template}}
