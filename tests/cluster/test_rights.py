"""The permissions of our processes are exactly those that they use, by the API server's audit log."""

from __future__ import annotations

import asyncio
import json
import ssl
from functools import partial
from pathlib import Path

import aiohttp
import pytest
import yaml

from cli_user import CliUser, wait_all_gone
from in_place_roll import check_in_place_roll
from pincompute.api.kinds import WORKLOADS
from pincompute.api.names import (
    API_VERSION,
    CONFIG_STORE,
    DESK,
    ENGINE,
    GROUP,
    INSIGHT,
    LOG_STORE,
    OPERATOR,
    PROJECT_LABEL,
    SECRET_STORE,
    SIGNER,
    STORAGE_PROVISIONER,
    WANTED_HASH_ANNOTATION,
    WORKLOAD_LABEL,
)
from pincompute.api.project import Project
from pincompute.base.platform_context import read_context
from pincompute.controller.resources import CUSTOM_RESOURCES, PROJECT_NATIVE_SELECTOR, PROJECT_NATIVES, WORKLOAD_NATIVES
from pincompute.engine.manifest_files import MANIFESTS
from pincompute.engine.platform import Platform
from pincompute.kube.client import Client
from pincompute.kube.kubeconfig import load_kubeconfig
from pincompute.kube.resource import (
    CORE_EVENTS,
    CRON_JOBS,
    DAEMON_SETS,
    DEPLOYMENTS,
    JOBS,
    NAMESPACES,
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    SERVICE_ACCOUNTS,
    STATEFUL_SETS,
    STORAGE_CLASSES,
    Object,
    Resource,
)
from rbac_audit import ApiPermission, audited_events, granted_permissions, list_fallback_permissions, used_permissions
from real_platform import WAIT_TIMEOUT_S, wait_until
from transcripts import ROOT

pytestmark = pytest.mark.cluster

USERS = (OPERATOR, DESK, INSIGHT, LOG_STORE, SECRET_STORE, CONFIG_STORE, "pincompute-ingress", "pincompute-storage")

COVERED_SUBJECTS = {*USERS, SIGNER, "system:serviceaccounts"}
KWOK = "pincompute-kwok"
"""kwok is a third-party program; its permissions are those of its upstream manifest."""

RARE = {
    # Read when an eviction is rejected, which may or may not happen during these tests.
    ApiPermission(OPERATOR, "", "pods", "get"),
    # Used where a node has no agent for shells: by test_debug.py, on the same platform.
    ApiPermission(DESK, "", "pods/exec", "get"),
    # Used for plans of workloads with callers, which need a part of the runtime.
    ApiPermission(DESK, "networking.k8s.io", "networkpolicies", "create"),
}
"""Used by some runs of these tests and not by others."""

NEEDED_BUT_NOT_AUDITED = {
    # Needed by clusters with OwnerReferencesPermissionEnforcement only.
    *(
        ApiPermission(OPERATOR, GROUP, f"{each.plural()}/finalizers", "update")
        for each in (*WORKLOADS.values(), Project)
    ),
    *RARE,
    # A workload lives for an hour and is kept for another one before it is deleted.
    *(ApiPermission(OPERATOR, GROUP, each.plural(), "delete") for each in WORKLOADS.values()),
    # Needed by some clusters, in whose audit logs it does not appear.
    *(ApiPermission(DESK, "", f"pods/{way}", "create") for way in ("exec", "portforward")),
    # Checked by the kubelets that the desk asks; the API server sees no request for it.
    ApiPermission(DESK, "", "nodes/stats", "get"),
    # Leases are excluded from the audit log.
    *(ApiPermission(OPERATOR, "coordination.k8s.io", "leases", verb) for verb in ("create", "get", "watch", "patch")),
    # Checked when an apply creates an object; the request is a patch.
    *(
        ApiPermission(OPERATOR, each.group, each.plural, "create")
        for each in (CRON_JOBS, DAEMON_SETS, DEPLOYMENTS, STATEFUL_SETS)
    ),
    # Checked when a RoleBinding is written; there is no request for it.
    ApiPermission(OPERATOR, "rbac.authorization.k8s.io", "clusterroles", "bind"),
}

PROJECT_NAME = "rights"
DOCUMENT = """\
apiVersion: pinterest.com/v1
kind: {kind}
metadata: {{name: {name}}}
spec: {{image: "hello:test", {spec}}}
"""
SPECS = {
    "PinterestService": "port: 8080, replicas: 2, configuration: {a.txt: b}",
    "PinterestStatefulSet": "port: 8080, storage: 1Mi",
    "PinterestDaemon": "port: 8080",
    "PinterestCronJob": "schedule: 30 3 1 1 *",
    "PinterestTrainingJob": 'command: ["true"]',
    "PinterestTrainingJob with another framework": 'command: ["true"], framework: tensorflow, workers: 1',
    "PinterestJobSet": "tasks: 1, suspended: me, claims: [{name: disk, size: 1Mi, path: /disk, retained: true}]",
}
NAMES = {spec_key: f"rights-{index}" for index, spec_key in enumerate(SPECS)}


def test_no_permission_is_a_wildcard() -> None:
    assert not [right for right in granted_permissions({*USERS, SIGNER}) if "*" in "".join(right)]


def test_all_subjects_are_covered() -> None:
    """All subjects of the manifest are covered by this file or by test_identity.py."""
    objects = list(yaml.safe_load_all((MANIFESTS / "access.yaml").read_text()))
    roles = {each["metadata"]["name"] for each in objects if "rules" in each}
    given = [each for each in objects if each.get("roleRef", {}).get("name") in roles]
    assert {subject["name"] for each in given for subject in each["subjects"]} == {*COVERED_SUBJECTS, KWOK}


async def test_granted_permissions_are_used_and_no_request_is_denied(real_platform: Platform, tmp_path: Path) -> None:
    assert {spec_key.split()[0] for spec_key in SPECS} == WORKLOADS.keys()
    person = CliUser(real_platform, tmp_path)
    await person.pin("image", "load", str(ROOT / "examples" / "hello"), "--as", "hello:test")
    async with Client(load_kubeconfig(real_platform.home.kubeconfig), agent="tests") as client:
        await check_in_place_roll(person, client)
        await _create_planning_inputs(client)
        # One example has a custom host, and one tolerates a taint.
        opened: Object = {"spec": {"hosts": ["shop.example.com"], "placement": {"tolerations": ["dedicated"]}}}
        await client.patch(CUSTOM_RESOURCES[Project.__name__], "me", "", opened, style="merge", manager=ENGINE)
        await asyncio.gather(*(_deploy_and_plan(person, spec_key) for spec_key in SPECS))
        # Plans of every kind, and of an existing object. The project of two examples exists nowhere.
        planned = await person.pin("plan", str(ROOT / "examples"), code=1)
        refused = [line for line in planned.splitlines() if line.startswith("would be refused")]
        assert refused == ["would be refused: no project 'edge', or no permission to view it  [ProjectUnknown]"] * 2
        project = await client.get(CUSTOM_RESOURCES["Project"], PROJECT_NAME)
        document = {**project, "metadata": {"name": PROJECT_NAME}}
        del document["status"]
        (person.folder / "project.yaml").write_text(yaml.safe_dump(document))
        assert "is up to date: no changes" in await person.pin("plan", "project.yaml")
        await person.pin("logs", NAMES["PinterestService"], "--project", PROJECT_NAME)
        follow = person.pin("logs", NAMES["PinterestService"], "--project", PROJECT_NAME, "--follow")
        following = asyncio.create_task(follow)
        await _exec_and_forward(person)
        await person.pin("get", "--project", PROJECT_NAME)
        await person.pin("show", NAMES["PinterestService"], "--project", PROJECT_NAME)
        await person.pin("get", "--project", "nowhere", code=1)
        await _diagnose(person, client)
        await _call_as_program(real_platform, client)
        await _manage_projects_and_parts(person, client)
        await _use_storage_agent(client)
        await _cause_drift(client)
        await asyncio.gather(*(person.pin("delete", each, "--project", PROJECT_NAME) for each in NAMES.values()))
        # --follow ends with the workload.
        await following
        await _delete_claims(client)
        for kind, name in (("Runtime", "1"), ("PinterestSidecar", "rights-1"), ("Project", PROJECT_NAME)):
            await client.delete(CUSTOM_RESOURCES[kind], name)
    refused = [
        event for event in audited_events(real_platform, USERS) if event.get("responseStatus", {}).get("code") == 403
    ]
    # Creations in a namespace that is being deleted are always rejected.
    assert [event for event in refused if "being terminated" not in event["responseStatus"].get("message", "")] == []
    unused = granted_permissions(USERS) - used_permissions(real_platform, USERS) - list_fallback_permissions(USERS)
    assert unused | RARE == NEEDED_BUT_NOT_AUDITED


async def _manage_projects_and_parts(person: CliUser, client: Client) -> None:
    """Create, change and delete a project by the desk, and create a runtime and its part."""
    await person.pin("project", "create", "rights-new", "--owner", "team-ads", "--member", "ann=owner")
    await person.pin("project", "add-member", "rights-new", "ben", "--role", "viewer")
    await person.pin("project", "delete", "rights-new")
    created = (("PinterestSidecar", "rights-9", '{image: "a:1"}'), ("Runtime", "999", "{parts: [rights-9]}"))
    for kind, name, spec in created:
        text = f"apiVersion: {API_VERSION}\nkind: {kind}\nmetadata: {{name: '{name}'}}\nspec: {spec}\n"
        (person.folder / "version.yaml").write_text(text)
        await person.pin("deploy", "version.yaml")
    for kind, name, _ in reversed(created):
        await client.delete(CUSTOM_RESOURCES[kind], name)


async def _exec_and_forward(person: CliUser) -> None:
    """Use `pin shell` and `pin port-forward`."""
    words = (NAMES["PinterestService"], "--project", PROJECT_NAME)
    assert await person.pin("shell", *words, "--", "echo", "inside") == "inside\n"
    async with person.pin_lines("port-forward", *words, ":8080") as lines:
        address = (await anext(lines)).split()[0]
        async with aiohttp.ClientSession() as session, session.get(address) as answer:
            assert answer.status == 200


async def _use_storage_agent(client: Client) -> None:
    """Use the storage agent: an unsupported claim, and a claim that is expanded."""
    device = {
        "metadata": {"name": "device", "namespace": PROJECT_NAME},
        "spec": {"accessModes": ["ReadWriteOnce"], "volumeMode": "Block", "storageClassName": "at-once"}
        | {"resources": {"requests": {"storage": "1Mi"}}},
    }
    at_once = {"metadata": {"name": "at-once"}, "provisioner": STORAGE_PROVISIONER, "volumeBindingMode": "Immediate"}
    await client.create(STORAGE_CLASSES, at_once, manager=ENGINE)
    await client.create(PERSISTENT_VOLUME_CLAIMS, device, manager=ENGINE)
    # Kubernetes may emit other events before, as long as it does not know the class.
    await wait_until(client, CORE_EVENTS, PROJECT_NAME, _reports_block_volume)
    await client.delete(PERSISTENT_VOLUME_CLAIMS, "device", PROJECT_NAME)
    await client.delete(STORAGE_CLASSES, "at-once")
    disks = (
        await client.list(
            PERSISTENT_VOLUME_CLAIMS, PROJECT_NAME, labels=f"{WORKLOAD_LABEL}={NAMES['PinterestStatefulSet']}"
        )
    ).items
    name = disks[0]["metadata"]["name"]
    more = {"spec": {"resources": {"requests": {"storage": "2Mi"}}}}
    await client.patch(PERSISTENT_VOLUME_CLAIMS, name, PROJECT_NAME, more, style="merge", manager=ENGINE)
    await wait_until(
        client,
        PERSISTENT_VOLUME_CLAIMS,
        PROJECT_NAME,
        lambda seen: seen["status"]["capacity"]["storage"] == "2Mi",
        name,
    )


def _reports_block_volume(event: Object) -> bool:
    failed = (event["involvedObject"]["name"], event["reason"]) == ("device", "ProvisioningFailed")
    return failed and "volumeMode must be Filesystem" in event["message"]


async def _deploy_and_plan(person: CliUser, spec_key: str) -> None:
    """Deploy one workload of a kind, plan it before and after, and deploy it again."""
    kind = spec_key.split()[0]
    file = f"{NAMES[spec_key]}.yaml"
    (person.folder / file).write_text(DOCUMENT.format(kind=kind, name=NAMES[spec_key], spec=SPECS[spec_key]))
    code = 1 if kind == "PinterestJobSet" else 0
    # Plan with dry-run requests for all objects.
    await person.pin("plan", file, "--project", PROJECT_NAME)
    await person.pin("deploy", file, "--project", PROJECT_NAME, code=code)
    await person.pin("plan", file, "--project", PROJECT_NAME)
    # Existing objects are written with other verbs than new ones.
    await person.pin("deploy", file, "--project", PROJECT_NAME, "--no-wait")
    if kind == "PinterestDaemon":
        # Pods of daemons are deleted during a rollout.
        changed = f"{SPECS[spec_key]}, environment: {{CHANGED: now}}"
        (person.folder / file).write_text(DOCUMENT.format(kind=kind, name=NAMES[spec_key], spec=changed))
        await person.pin("deploy", file, "--project", PROJECT_NAME)


async def _diagnose(person: CliUser, client: Client) -> None:
    """Diagnose workloads that no node accepts, for which nodes, volumes and storage classes are read."""
    claims = "port: 5432, claims: {data: {path: /data, size: 1Gi, class: fats}}"
    for kind, name, spec, reason, told in (
        ("PinterestService", "huge", "port: 8080, cpu: 4000", "Unschedulable", "a replica requests 4000 "),
        ("PinterestStatefulSet", "homeless", claims, "ClaimNotBound", "names storage class fats, which does not exist"),
    ):
        file = person.folder / f"{name}.yaml"
        file.write_text(DOCUMENT.format(kind=kind, name=name, spec=spec))
        await person.pin("deploy", str(file), "--project", PROJECT_NAME, "--no-wait")
        await wait_until(client, CUSTOM_RESOURCES[kind], PROJECT_NAME, partial(_has_reason, reason), name)
        assert told in await person.pin("why", name, "--project", PROJECT_NAME, code=1)
        await person.pin("delete", name, "--project", PROJECT_NAME)
        labels = f"{WORKLOAD_LABEL}={name}"
        for claim in (await client.list(PERSISTENT_VOLUME_CLAIMS, PROJECT_NAME, labels=labels)).items:
            await client.delete(PERSISTENT_VOLUME_CLAIMS, claim["metadata"]["name"], PROJECT_NAME)
        async with asyncio.timeout(WAIT_TIMEOUT_S):
            # The next steps select one object of each kind, which must not be one in deletion.
            for resource in WORKLOAD_NATIVES.values():
                await wait_all_gone(client, resource, PROJECT_NAME, labels=labels)


async def _call_as_program(platform: Platform, client: Client) -> None:
    """Call the desk as a program, with a service account token for its audience."""
    account = {"metadata": {"name": "robot", "namespace": PROJECT_NAME}}
    await client.create(SERVICE_ACCOUNTS, account, manager=ENGINE)
    path = f"/api/v1/namespaces/{PROJECT_NAME}/serviceaccounts/robot/token"
    body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"audiences": [DESK]}}
    token = json.loads(await client.raw("POST", path, body=json.dumps(body).encode()))["status"]["token"]
    context = read_context(platform.home.root.parent, platform.name)
    connector = aiohttp.TCPConnector(ssl=ssl.create_default_context(cafile=context.authority))
    headers = {"Authorization": f"Bearer {token}"}
    async with (
        aiohttp.ClientSession(context.desk, headers=headers, connector=connector) as http,
        http.get("/v1/whoami") as response,
    ):
        assert (await response.json())["name"] == f"program {PROJECT_NAME}/robot"
    await client.delete(SERVICE_ACCOUNTS, "robot", PROJECT_NAME)


async def _create_planning_inputs(client: Client) -> None:
    """Create a project, a sidecar and a runtime, which are inputs of planning."""
    members: Object = {"owner": {"people": ["ann"]}}
    quota: Object = {"infrastructure": {}, "on-demand": {}}
    spec: Object = {"owner": "ann", "review": "open", "members": members, "quota": quota}
    project: Object = {"metadata": {"name": PROJECT_NAME}, "spec": spec}
    part = {"metadata": {"name": "rights-1"}, "spec": {"image": "hello:test"}}
    # The runtime is not rolled out.
    runtime = {"metadata": {"name": "1"}, "spec": {"parts": ["rights-1"]}}
    for kind, body in (("Project", project), ("PinterestSidecar", part), ("Runtime", runtime)):
        await client.apply(body, CUSTOM_RESOURCES[kind], manager=ENGINE)
    for kind, name in (("Project", PROJECT_NAME), ("PinterestSidecar", "rights-1"), ("Runtime", "1")):
        await wait_until(client, CUSTOM_RESOURCES[kind], "", _said, name)


async def _delete_claims(client: Client) -> None:
    """Delete claims, which survive their workload, and wait for their volumes."""
    for each in (await client.list(PERSISTENT_VOLUME_CLAIMS, PROJECT_NAME)).items:
        await client.delete(PERSISTENT_VOLUME_CLAIMS, each["metadata"]["name"], PROJECT_NAME)
    async with asyncio.timeout(60):
        await wait_all_gone(client, PERSISTENT_VOLUMES, "")


def _has_reason(reason: str, seen: Object) -> bool:
    return any(each["reason"] == reason for each in seen.get("status", {}).get("conditions", ()))


def _said(seen: Object) -> bool:
    conditions = seen.get("status", {}).get("conditions", ())
    return any(each["reason"] != "Progressing" for each in conditions)


async def _cause_drift(client: Client) -> None:
    """Make the operator use its permissions: change objects, and create unwanted ones."""
    for kind, resource in WORKLOAD_NATIVES.items():
        # Workloads become a NetworkPolicy with a part of the runtime only, with the rights for projects.
        if kind not in PROJECT_NATIVES:
            await _cause_drift_of(client, resource, WORKLOAD_LABEL)
    for resource in PROJECT_NATIVES.values():
        await _cause_drift_of(client, resource, f"{PROJECT_LABEL}={PROJECT_NAME},{PROJECT_NATIVE_SELECTOR}")
    async with asyncio.timeout(WAIT_TIMEOUT_S):
        for resource in (*WORKLOAD_NATIVES.values(), *PROJECT_NATIVES.values()):
            # A namespace is never deleted directly.
            if resource.namespaced:
                await wait_all_gone(client, resource, PROJECT_NAME, fields="metadata.name=formerly")
    await wait_until(
        client, NAMESPACES, "", lambda seen: WANTED_HASH_ANNOTATION in seen["metadata"]["annotations"], PROJECT_NAME
    )


async def _cause_drift_of(client: Client, resource: Resource, labels: str) -> None:
    items = (await client.list(resource, PROJECT_NAME, labels=labels)).items
    seen = next(each for each in items if _is_ours(each))
    # The annotation of another manager makes the operator read the object.
    body = {"metadata": {"annotations": {WANTED_HASH_ANNOTATION: None, "example.com/note": "drift"}}}
    await client.patch(resource, seen["metadata"]["name"], PROJECT_NAME, body, style="merge", manager="tests")
    if resource.namespaced:
        await client.create(resource, _unwanted_copy(seen, resource), manager=ENGINE)


def _is_ours(native: Object) -> bool:
    """Whether the operator owns an object: claims and jobs that Kubernetes creates also have our labels."""
    return any(each["apiVersion"] == API_VERSION for each in native["metadata"].get("ownerReferences", ()))


def _unwanted_copy(seen: Object, resource: Resource) -> Object:
    """An unwanted copy of an object, without fields that Kubernetes sets."""
    body: Object = {field: value for field, value in seen.items() if field not in {"metadata", "status"}}
    for field in ("clusterIP", "clusterIPs", "volumeName"):
        body.get("spec", {}).pop(field, None)
    if resource is JOBS:
        del body["spec"]["selector"]
        labels = body["spec"]["template"]["metadata"]["labels"]
        body["spec"]["template"]["metadata"]["labels"] = {
            name: value for name, value in labels.items() if name.startswith(GROUP)
        }
    metadata = {each: seen["metadata"][each] for each in ("namespace", "labels", "ownerReferences")}
    named = {"name": "formerly", **metadata}
    return {**body, "apiVersion": resource.api_version, "kind": resource.kind, "metadata": named}
