"""What our processes may do is what they do: granted and used, by the API server's own audit log."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import aiohttp
import pytest
import yaml

from person import Person, all_gone
from pincompute.api.kinds import WORKLOADS
from pincompute.api.names import (
    API_VERSION,
    DESK,
    ENGINE,
    GROUP,
    LOG_STORE,
    OPERATOR,
    PROJECT,
    SIGNER,
    STORAGE,
    WANTED,
    WORKLOAD,
)
from pincompute.api.project import Project
from pincompute.base.context import read_context
from pincompute.controller.resources import NATIVES, NOUNS, PROJECT_LABELS, PROJECT_NATIVES
from pincompute.engine.bootstrap import MANIFESTS
from pincompute.engine.platform import Platform
from pincompute.kube.client import Client
from pincompute.kube.kubeconfig import load
from pincompute.kube.resource import (
    CLAIMS,
    CORE_EVENTS,
    JOBS,
    NAMESPACES,
    SERVICE_ACCOUNTS,
    STORAGE_CLASSES,
    VOLUMES,
    Object,
    Resource,
)
from real_platform import PATIENCE, until
from rights import Right, audited, granted, paged, used
from rolled import rolled_in_place
from transcripts import ROOT

pytestmark = pytest.mark.cluster

USERS = (OPERATOR, DESK, LOG_STORE, "pincompute-ingress", "pincompute-storage")

LOOKED_AT = {*USERS, SIGNER, "system:serviceaccounts"}
KWOK = "pincompute-kwok"
"""Another's program has what its makers ask for it."""

RARE = Right(OPERATOR, "", "pods", "get")
"""To see whose pod it is that refuses to be let go: not made to happen here, and it may have happened."""

NEEDED_BUT_NOT_AUDITED = {
    # Only a stricter cluster than this one asks for it.
    *(Right(OPERATOR, GROUP, f"{each.plural()}/finalizers", "update") for each in (*WORKLOADS.values(), Project)),
    RARE,
    # Of clusters that ask for it, none writes it down.
    *(Right(DESK, "", f"pods/{way}", "create") for way in ("exec", "portforward")),
    # Leases are renewed all the time, and are left out of the log.
    *(Right(OPERATOR, "coordination.k8s.io", "leases", verb) for verb in ("create", "get", "watch", "patch")),
    # Asked of whoever writes a RoleBinding; nobody sends it.
    Right(OPERATOR, "rbac.authorization.k8s.io", "clusterroles", "bind"),
}

PROJECT_NAME = "rights"
DOCUMENT = """\
apiVersion: pinterest.com/v1
kind: {kind}
metadata: {{name: {name}}}
spec: {{image: "hello:test", {spec}}}
"""
SPECS = {
    "PinterestService": "port: 8080, configuration: {a.txt: b}",
    "PinterestStatefulSet": "port: 8080, storage: 1Mi",
    "PinterestDaemon": "port: 8080",
    "PinterestCronJob": "schedule: 30 3 1 1 *",
    "PinterestTrainingJob": 'command: ["true"]',
    "PinterestTrainingJob with another framework": 'command: ["true"], framework: tensorflow, workers: 1',
    "PinterestJobSet": "tasks: 1, suspended: me, claims: [{name: disk, size: 1Mi, path: /disk, retained: true}]",
}
NAMES = {which: f"rights-{index}" for index, which in enumerate(SPECS)}


def test_no_right_is_a_wildcard() -> None:
    assert not [right for right in granted({*USERS, SIGNER}) if "*" in "".join(right)]


def test_everybody_who_is_given_a_right_is_looked_at() -> None:
    """Here, or where identities are."""
    objects = list(yaml.safe_load_all((MANIFESTS / "access.yaml").read_text()))
    roles = {each["metadata"]["name"] for each in objects if "rules" in each}
    given = [each for each in objects if each.get("roleRef", {}).get("name") in roles]
    assert {subject["name"] for each in given for subject in each["subjects"]} == {*LOOKED_AT, KWOK}


async def test_what_is_granted_is_used_and_nothing_is_refused(real_platform: Platform, tmp_path: Path) -> None:
    assert {which.split()[0] for which in SPECS} == WORKLOADS.keys()
    person = Person(real_platform, tmp_path)
    await person.pin("image", "load", str(ROOT / "examples" / "hello"), "--as", "hello:test")
    async with Client(load(real_platform.home.kubeconfig), agent="tests") as client:
        await rolled_in_place(person, client)
        await _plan_by(client)
        await asyncio.gather(*(_live(person, which) for which in SPECS))
        # Every kind there is, and one that is there: compared with what it became.
        await person.pin("plan", str(ROOT / "examples"))
        project = await client.get(NOUNS["Project"], PROJECT_NAME)
        document = {**project, "metadata": {"name": PROJECT_NAME}}
        del document["status"]
        (person.folder / "project.yaml").write_text(yaml.safe_dump(document))
        assert "nothing would change" in await person.pin("plan", "project.yaml")
        await person.pin("logs", NAMES["PinterestService"], "--project", PROJECT_NAME)
        follow = person.pin("logs", NAMES["PinterestService"], "--project", PROJECT_NAME, "--follow")
        following = asyncio.create_task(follow)
        await _enter(person)
        await person.pin("get", "--project", PROJECT_NAME)
        await person.pin("show", NAMES["PinterestService"], "--project", PROJECT_NAME)
        await person.pin("get", "--project", "nowhere", code=1)
        await _ask_why(person, client)
        await _ask_as_a_program(real_platform, client)
        await _claim(client)
        await _disturb(client)
        await asyncio.gather(*(person.pin("delete", each, "--project", PROJECT_NAME) for each in NAMES.values()))
        # It ends with the workload.
        await following
        await _let_go_of_claims(client)
        for kind, name in (("Runtime", "1"), ("PinterestSidecar", "rights-1"), ("Project", PROJECT_NAME)):
            await client.delete(NOUNS[kind], name)
    refused = [event for event in audited(real_platform, USERS) if event.get("responseStatus", {}).get("code") == 403]
    # Nothing is made in a namespace that ends, whoever asks.
    assert [event for event in refused if "being terminated" not in event["responseStatus"].get("message", "")] == []
    unused = granted(USERS) - used(real_platform, USERS) - paged(USERS)
    assert unused | {RARE} == NEEDED_BUT_NOT_AUDITED


async def _enter(person: Person) -> None:
    """A copy, and a port of it."""
    words = (NAMES["PinterestService"], "--project", PROJECT_NAME)
    assert await person.pin("shell", *words, "--", "echo", "inside") == "inside\n"
    async with person.hearing("port-forward", *words, ":8080") as lines:
        address = (await anext(lines)).split()[0]
        async with aiohttp.ClientSession() as session, session.get(address) as answer:
            assert answer.status == 200


async def _claim(client: Client) -> None:
    """What cannot be given is told; what grows and goes is by the claims of the workloads and by this one."""
    device = {
        "metadata": {"name": "device", "namespace": PROJECT_NAME},
        "spec": {"accessModes": ["ReadWriteOnce"], "volumeMode": "Block", "storageClassName": "at-once"}
        | {"resources": {"requests": {"storage": "1Mi"}}},
    }
    at_once = {"metadata": {"name": "at-once"}, "provisioner": STORAGE, "volumeBindingMode": "Immediate"}
    await client.create(STORAGE_CLASSES, at_once, manager=ENGINE)
    await client.create(CLAIMS, device, manager=ENGINE)
    # Kubernetes itself may say before that it has not heard of the class yet.
    await until(client, CORE_EVENTS, PROJECT_NAME, _says_that_it_is_a_device)
    await client.delete(CLAIMS, "device", PROJECT_NAME)
    await client.delete(STORAGE_CLASSES, "at-once")
    disks = (await client.list(CLAIMS, PROJECT_NAME, labels=f"{WORKLOAD}={NAMES['PinterestStatefulSet']}")).items
    name = disks[0]["metadata"]["name"]
    more = {"spec": {"resources": {"requests": {"storage": "2Mi"}}}}
    await client.patch(CLAIMS, name, PROJECT_NAME, more, style="merge", manager=ENGINE)
    await until(client, CLAIMS, PROJECT_NAME, lambda seen: seen["status"]["capacity"]["storage"] == "2Mi", name)


def _says_that_it_is_a_device(event: Object) -> bool:
    failed = (event["involvedObject"]["name"], event["reason"]) == ("device", "ProvisioningFailed")
    return failed and "bare device" in event["message"]


async def _live(person: Person, which: str) -> None:
    """One of each kind; what waits to be allowed, or for a folder to write to, has natives all the same."""
    kind = which.split()[0]
    file = f"{NAMES[which]}.yaml"
    (person.folder / file).write_text(DOCUMENT.format(kind=kind, name=NAMES[which], spec=SPECS[which]))
    code = 1 if kind == "PinterestJobSet" else 0
    # What a cluster would say of all that it becomes.
    await person.pin("plan", file, "--project", PROJECT_NAME)
    await person.pin("deploy", file, "--project", PROJECT_NAME, code=code)
    await person.pin("plan", file, "--project", PROJECT_NAME)
    # What is there already is written otherwise than what is new.
    await person.pin("deploy", file, "--project", PROJECT_NAME, "--no-wait")
    if kind == "PinterestDaemon":
        # Its copies make room for their successors.
        changed = f"{SPECS[which]}, environment: {{CHANGED: now}}"
        (person.folder / file).write_text(DOCUMENT.format(kind=kind, name=NAMES[which], spec=changed))
        await person.pin("deploy", file, "--project", PROJECT_NAME)


async def _ask_why(person: Person, client: Client) -> None:
    """Of what no node takes: only then are the nodes looked at."""
    file = person.folder / "huge.yaml"
    file.write_text(DOCUMENT.format(kind="PinterestService", name="huge", spec="port: 8080, cpu: 4000"))
    await person.pin("deploy", str(file), "--project", PROJECT_NAME, "--no-wait")
    await until(client, NOUNS["PinterestService"], PROJECT_NAME, _has_no_room, "huge")
    assert "a copy needs 4000 cpu, and " in await person.pin("why", "huge", "--project", PROJECT_NAME, code=1)
    await person.pin("delete", "huge", "--project", PROJECT_NAME)
    async with asyncio.timeout(PATIENCE):
        # What follows takes one of each native, and none that is on its way out.
        for resource in NATIVES.values():
            await all_gone(client, resource, PROJECT_NAME, labels=f"{WORKLOAD}=huge")


async def _ask_as_a_program(platform: Platform, client: Client) -> None:
    """By an account, with a token that was made for the desk."""
    account = {"metadata": {"name": "robot", "namespace": PROJECT_NAME}}
    await client.create(SERVICE_ACCOUNTS, account, manager=ENGINE)
    path = f"/api/v1/namespaces/{PROJECT_NAME}/serviceaccounts/robot/token"
    body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"audiences": [DESK]}}
    token = json.loads(await client.raw("POST", path, body=json.dumps(body).encode()))["status"]["token"]
    desk = read_context(platform.home.root.parent, platform.name).desk
    headers = {"Authorization": f"Bearer {token}"}
    async with aiohttp.ClientSession(desk, headers=headers) as http, http.get("/v1/whoami") as told:
        assert (await told.json())["name"] == f"program {PROJECT_NAME}/robot"
    await client.delete(SERVICE_ACCOUNTS, "robot", PROJECT_NAME)


async def _plan_by(client: Client) -> None:
    """What workloads are planned by, each with all that it becomes."""
    members: Object = {"owner": {"people": ["ann"]}}
    quota: Object = {"infrastructure": {}, "on-demand": {}}
    whose: Object = {"owner": "ann", "review": "open", "members": members, "quota": quota}
    project: Object = {"metadata": {"name": PROJECT_NAME}, "spec": whose}
    part = {"metadata": {"name": "rights-1"}, "spec": {"image": "hello:test"}}
    # Nobody has it: it is only prepared.
    runtime = {"metadata": {"name": "1"}, "spec": {"parts": ["rights-1"]}}
    for kind, body in (("Project", project), ("PinterestSidecar", part), ("Runtime", runtime)):
        await client.apply(body, NOUNS[kind], manager=ENGINE)
    for kind, name in (("Project", PROJECT_NAME), ("PinterestSidecar", "rights-1"), ("Runtime", "1")):
        await until(client, NOUNS[kind], "", _said, name)


async def _let_go_of_claims(client: Client) -> None:
    """They outlive their workload; of the one that is not wanted, Kubernetes may have made a copy in its short life."""
    for each in (await client.list(CLAIMS, PROJECT_NAME)).items:
        await client.delete(CLAIMS, each["metadata"]["name"], PROJECT_NAME)
    async with asyncio.timeout(60):
        await all_gone(client, VOLUMES, "")


def _has_no_room(seen: Object) -> bool:
    return any(each["reason"] == "Unschedulable" for each in seen.get("status", {}).get("conditions", ()))


def _said(seen: Object) -> bool:
    conditions = seen.get("status", {}).get("conditions", ())
    return any(each["reason"] != "Progressing" for each in conditions)


async def _disturb(client: Client) -> None:
    """Everything that makes the operator use its rights: natives that differ, and natives that are not wanted."""
    for resource in NATIVES.values():
        await _disturb_native(client, resource, WORKLOAD)
    for resource in PROJECT_NATIVES.values():
        await _disturb_native(client, resource, f"{PROJECT}={PROJECT_NAME},{PROJECT_LABELS}")
    async with asyncio.timeout(PATIENCE):
        for resource in (*NATIVES.values(), *PROJECT_NATIVES.values()):
            # Nobody removes a namespace by itself.
            if resource.namespaced:
                await all_gone(client, resource, PROJECT_NAME, fields="metadata.name=formerly")
    await until(client, NAMESPACES, "", lambda seen: WANTED in seen["metadata"]["annotations"], PROJECT_NAME)


async def _disturb_native(client: Client, resource: Resource, labels: str) -> None:
    items = (await client.list(resource, PROJECT_NAME, labels=labels)).items
    seen = next(each for each in items if _is_ours(each))
    body = {"metadata": {"annotations": {WANTED: None}}}
    await client.patch(resource, seen["metadata"]["name"], PROJECT_NAME, body, style="merge", manager=ENGINE)
    if resource.namespaced:
        await client.create(resource, _formerly(seen, resource), manager=ENGINE)


def _is_ours(native: Object) -> bool:
    """Kubernetes makes claims and runs that bear our labels, and that are not ours to change."""
    return any(each["apiVersion"] == API_VERSION for each in native["metadata"].get("ownerReferences", ()))


def _formerly(seen: Object, resource: Resource) -> Object:
    """One more of it, that nobody wants any more: without what Kubernetes itself has written into it."""
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
