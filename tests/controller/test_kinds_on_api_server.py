"""Our kinds and their natives on a real API server: schemas, validation rules with our messages, kubectl."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pytest
import yaml
from hypothesis import Phase, given, settings

from control_plane import ControlPlane
from pincompute.api.custom_resource import annotation_errors, label_errors
from pincompute.api.documents import Document, read_documents
from pincompute.api.kinds import KINDS, WORKLOADS
from pincompute.api.manifests import crds
from pincompute.api.names import CATEGORY, CLI_MANAGER
from pincompute.api.validation import parse_resource
from pincompute.base.progress import Progress
from pincompute.base.settings import setting_value
from pincompute.controller.resources import CUSTOM_RESOURCES
from pincompute.engine.build import build_engine
from pincompute.kube import request as requests
from pincompute.kube.client import Client
from pincompute.kube.errors import AlreadyExists, ApiError
from pincompute.kube.request import Target
from pincompute.kube.resource import CONFIG_MAPS, NAMESPACES, Resource
from pincompute.objects.content import Object, object_label
from snapshot_strategies import new_snapshot, plan_snapshot
from strategies import stored_resources
from workloads import cluster_client, new_project

pytestmark = pytest.mark.cluster

EXAMPLES = Path(__file__).parents[2] / "examples"
DOCUMENTS = [
    (f"{file.relative_to(EXAMPLES)}:{document.content['metadata']['name']}", document)
    for file in sorted(EXAMPLES.rglob("*.yaml"))
    for document in read_documents(file.read_text(), file.name)
]
GROUPS_CHECKED_ELSEWHERE = {"kubeflow.org"}
"""API groups that are not installed here. Their natives are checked elsewhere. Every other group must be known."""

each_example = pytest.mark.parametrize("document", [each for _, each in DOCUMENTS], ids=[name for name, _ in DOCUMENTS])


@pytest.fixture(scope="module")
def plane_with_crds(plane: ControlPlane) -> ControlPlane:
    """A control plane with our CustomResourceDefinitions."""

    async def install() -> None:
        async with cluster_client(plane):
            pass

    asyncio.run(install())
    return plane


def open_client(plane: ControlPlane) -> Client:
    return Client(plane.access(), agent="tests")


class DryRunServer:
    """Validates objects by dry run."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._known: dict[str, dict[str, Resource]] = {}

    async def dry_run(self, native: Object) -> Object:
        """The object as the server would store it; raises if a field is unknown or invalid."""
        resource = (await self._resources(native["apiVersion"]))[native["kind"]]
        candidates = requests.apply(Target.of(resource, native), native, "tests", force=True)
        query = {**candidates.query, "dryRun": "All"}
        sent = await self._client.raw(
            candidates.method, candidates.path, query=query, body=candidates.body, content=candidates.content_type
        )
        stored: Object = json.loads(sent)
        return stored

    async def _resources(self, version: str) -> dict[str, Resource]:
        if version not in self._known:
            sent = json.loads(
                await self._client.raw("GET", f"/apis/{version}" if "/" in version else f"/api/{version}")
            )
            group, _, number = version.rpartition("/")
            self._known[version] = {
                each["kind"]: Resource(group, number, each["name"], each["kind"], each["namespaced"])
                for each in sent["resources"]
                if "/" not in each["name"]
            }
        return self._known[version]


async def create_project_namespace(client: Client, resource_: Any) -> None:
    """Creates the namespace for the natives of a project, which has the project's name."""
    name = resource_.metadata.namespace or resource_.metadata.name
    with suppress(AlreadyExists):
        await client.create(NAMESPACES, {"metadata": {"name": name}}, manager="tests")


@each_example
async def test_natives_of_example_are_valid(plane_with_crds: ControlPlane, document: Document) -> None:
    async with open_client(plane_with_crds) as client:
        server = DryRunServer(client)
        resource_: Any = parse_resource(document, await new_project(client))
        owner = msgspec.structs.replace(
            resource_, metadata=msgspec.structs.replace(resource_.metadata, uid="a-uid", generation=1)
        )
        await create_project_namespace(client, resource_)
        planned = plan_snapshot(new_snapshot(owner))
        assert planned.problems == ()
        for native in planned.wanted:
            if native["apiVersion"].partition("/")[0] in GROUPS_CHECKED_ELSEWHERE:
                continue
            stored = await server.dry_run(native)
            assert not dropped_paths(native, stored), object_label(native)


@pytest.mark.parametrize("kind", KINDS)
async def test_natives_of_generated_documents_are_valid(plane_with_crds: ControlPlane, kind: str) -> None:
    """For all documents that pass validation, except those with a template, which may contain anything."""
    async with open_client(plane_with_crds) as client:
        server, project = DryRunServer(client), await new_project(client)
        for resource_ in generate_resources(kind):
            place = {} if resource_.CLUSTER_SCOPED else {"namespace": project}
            owner = msgspec.structs.replace(resource_, metadata=msgspec.structs.replace(resource_.metadata, **place))
            await create_project_namespace(client, owner)
            for native in plan_snapshot(new_snapshot(owner)).wanted:
                if native["apiVersion"].partition("/")[0] not in GROUPS_CHECKED_ELSEWHERE:
                    await server.dry_run(native)


def generate_resources(kind: str) -> list[Any]:
    stored = []

    @settings(max_examples=25, deadline=None, database=None, derandomize=True, phases=[Phase.generate])
    @given(stored_resources(kind))
    def keep(resource_: Any) -> None:
        if not getattr(resource_.spec, "template", {}):
            stored.append(resource_)

    keep()
    return stored


METADATA_STRINGS = (
    "a", "A", "a.b", "a_b", "-a", "a-", "a b", "", "é", "a" * 63, "a" * 64, "a\n", "example.com/a", "Example.com/a",
    "a..b/c", "-a/b", "a-/b", "a/b/c", "/a", "a/", "a/-", "a/" + "b" * 64, "a" * 253 + "/b", "a" * 254 + "/b",
)  # fmt: skip


async def test_accepts_the_labels_and_annotations_that_the_server_accepts(plane_with_crds: ControlPlane) -> None:
    candidates: list[Object] = [{"labels": {name: "a"}} for name in METADATA_STRINGS]
    candidates += [{"labels": {"a": value}} for value in METADATA_STRINGS]
    candidates += [{"annotations": {name: "a b"}} for name in METADATA_STRINGS]
    async with cluster_client(plane_with_crds) as client:
        project = await new_project(client)
        accepted_by_server: list[Object] = []
        accepted_by_us: list[Object] = []
        for each in candidates:
            metadata = {"name": "marked", "namespace": project, **each}
            with suppress(ApiError):
                await client.create(CONFIG_MAPS, {"metadata": metadata}, manager=CLI_MANAGER, dry_run=True)
                accepted_by_server.append(each)
            if not [*label_errors(each.get("labels", {}), ()), *annotation_errors(each.get("annotations", {}), ())]:
                accepted_by_us.append(each)
    assert accepted_by_us == accepted_by_server
    assert candidates[0] in accepted_by_server


async def test_apply_preserves_every_character(plane_with_crds: ControlPlane) -> None:
    """An apply is parsed as YAML, in which some characters are line breaks and others are invalid."""
    text = "".join(chr(each) for each in range(0x20, 0x10000) if not 0xD800 <= each < 0xE000)
    async with open_client(plane_with_crds) as client:
        metadata = {"name": "a", "namespace": await new_project(client)}
        await client.apply({"metadata": metadata, "data": {"a": text}}, CONFIG_MAPS, manager="tests")
        assert (await client.get(CONFIG_MAPS, "a", metadata["namespace"]))["data"] == {"a": text}


def dropped_paths(sent: Any, stored: Any, path: str = "") -> list[str]:
    """Paths of fields that the server has dropped_paths."""
    if isinstance(sent, dict) and isinstance(stored, dict):
        return [miss for name in sent for miss in dropped_paths(sent[name], stored.get(name), f"{path}.{name}")]
    if isinstance(sent, list) and isinstance(stored, list):
        return [
            miss
            for index, each in enumerate(sent)
            for miss in dropped_paths(each, dict(enumerate(stored)).get(index), f"{path}[{index}]")
        ]
    return [path] if stored is None and sent not in (None, "", 0, False, [], {}) else []


@each_example
async def test_stored_example_is_planned_like_the_document(plane_with_crds: ControlPlane, document: Document) -> None:
    """The CRD has the same defaults as the types, and neither drops a field."""
    async with open_client(plane_with_crds) as client:
        resource_: Any = parse_resource(document, await new_project(client))
        await create_project_namespace(client, resource_)
        content = {**document.content, "metadata": msgspec.to_builtins(resource_.metadata)}
        seen = msgspec.convert(await DryRunServer(client).dry_run(content), type(resource_))
        written = msgspec.structs.replace(resource_, metadata=seen.metadata)
        assert seen.spec == resource_.spec
        assert plan_snapshot(new_snapshot(seen)) == plan_snapshot(new_snapshot(written))


MINIMAL_SPECS: dict[str, Object] = {
    "PinterestService": {"image": "web:1", "port": 8080},
    "PinterestJobSet": {"image": "count:1", "tasks": 3},
    "PinterestCronJob": {"image": "report:1", "schedule": "30 3 * * *"},
    "PinterestDaemon": {"image": "exporter:1"},
    "PinterestStatefulSet": {"image": "db:1", "port": 5432, "storage": "1Gi"},
    "PinterestTrainingJob": {"image": "ranking:1", "framework": "pytorch", "workers": 2},
    "PinterestSidecar": {"image": "logs:1"},
    "Runtime": {"parts": ["logs-1"], "roll": {"zones": ["a"]}},
    "Project": {"owner": "team-ads", "quota": {"on-demand": {}}},
}
NAMES = {"PinterestSidecar": "logs-1", "Runtime": "7"}


def resource(kind: str, project: str, name: str = "", **spec: Any) -> Object:
    """A minimal resource as a kubectl user would write it, with changed fields; None removes a field."""
    sent = {name: value for name, value in {**MINIMAL_SPECS[kind], **spec}.items() if value is not None}
    place = {} if KINDS[kind].CLUSTER_SCOPED else {"namespace": project}
    metadata = {"name": name or NAMES.get(kind, "a"), **place}
    return {"apiVersion": "pinterest.com/v1", "kind": kind, "metadata": metadata, "spec": sent}


def test_table_has_every_kind() -> None:
    assert MINIMAL_SPECS.keys() == KINDS.keys()


REJECTED: list[tuple[str, str, Object, str]] = [
    *((kind, "", {"image": None}, "spec.image is missing: write image: NAME:TAG") for kind in WORKLOADS),
    *((kind, "a" * (KINDS[kind].MAX_NAME_LENGTH + 1), {}, f"a name has at most {KINDS[kind].MAX_NAME_LENGTH}")
      for kind in KINDS if kind not in NAMES),
    *((kind, "a.b", {}, f"a name has at most {KINDS[kind].MAX_NAME_LENGTH} {KINDS[kind].NAME_RULE}") for kind in KINDS),
    *((kind, "", {"tier": "best"}, 'Unsupported value: "best"') for kind in WORKLOADS),
    ("PinterestService", "", {"replicas": 10**9}, "should be less than or equal to 10000"),
    ("PinterestService", "", {"port": 70000}, "should be less than or equal to 65535"),
    ("PinterestService", "", {"port": None}, "spec.port is missing: write port: 8080, or worker: true"),
    ("PinterestService", "", {"ports": [{"name": "x", "port": 8080}]},
     "spec.ports must not repeat the port of spec.port"),
    ("PinterestService", "", {"memory": "lots"}, "spec.memory"),
    ("PinterestService", "", {"memory": -1}, "spec.memory"),
    ("PinterestService", "", {"unavailable": "2"}, "spec.unavailable"),
    ("PinterestService", "", {"unavailable": "101%"}, "spec.unavailable"),
    ("PinterestService", "", {"rollout": {"surge": -1}}, "spec.rollout.surge"),
    ("PinterestStatefulSet", "", {"ports": [{"name": "x", "port": 5432}]}, "must not repeat the port of spec.port"),
    ("PinterestStatefulSet", "", {"claims": {"data": {"size": "1Gi", "path": "/a"}}},
     "already creates the claim 'data'"),
    ("PinterestJobSet", "", {"items": ["a"]}, "exactly one of spec.tasks and spec.items must be set"),
    ("PinterestJobSet", "", {"tasks": None}, "exactly one of spec.tasks and spec.items must be set"),
    ("PinterestJobSet", "", {"parallelism": 4}, "spec.parallelism must not be larger than the number of tasks"),
    ("PinterestCronJob", "", {"schedule": "often"}, "spec.schedule has five fields"),
    ("PinterestCronJob", "", {"timeZone": "a b"}, "spec.timeZone must be the name of a time zone"),
    ("PinterestDaemon", "", {"tier": "preemptible"}, "a daemon is never preempted"),
    ("PinterestDaemon", "", {"wholeNode": True}, "a daemon shares its node"),
    ("PinterestTrainingJob", "", {"roles": {"chief": {}}}, "pytorch has master and worker"),
    ("PinterestTrainingJob", "", {"roles": {"worker": {}}},
     "spec.workers and spec.roles.worker cannot be used together"),
    ("PinterestTrainingJob", "", {"script": "a", "command": ["b"]},
     "spec.script and spec.command cannot be used together"),
    ("Runtime", "", {"daemons": ["shipper@1"]}, "spec.daemons[0]"),
    ("Project", "kube-a", {}, "this namespace is reserved by the cluster"),
    ("Project", "default", {}, "this namespace is reserved by the cluster"),
    ("Project", "", {"quota": {}}, "spec.quota must name at least one tier"),
]  # fmt: skip


def _row_id(row: Any) -> str:
    return row[:40] if isinstance(row, str) else ""


async def test_accepts_minimal_resource_of_every_kind(plane_with_crds: ControlPlane) -> None:
    """Otherwise the table of rejected resources would prove nothing."""
    async with open_client(plane_with_crds) as client:
        project = await new_project(client)
        for kind in MINIMAL_SPECS:
            await DryRunServer(client).dry_run(resource(kind, project))


@pytest.mark.parametrize(("kind", "name", "spec", "message"), REJECTED, ids=_row_id)
async def test_rejects_invalid_resource_with_our_message(
    plane_with_crds: ControlPlane, kind: str, name: str, spec: Object, message: str
) -> None:
    async with open_client(plane_with_crds) as client:
        project = await new_project(client)
        with pytest.raises(ApiError) as refused:
            await DryRunServer(client).dry_run(resource(kind, project, name, **spec))
        assert message in refused.value.text()


CHANGES: list[tuple[str, Object, str]] = [
    ("PinterestSidecar", {"image": "logs:2"}, "a runtime part is immutable: create its next version"),
    ("Runtime", {"parts": ["logs-2"]}, "a runtime is immutable: create the one with the next number"),
    ("Runtime", {"daemons": ["infra/shipper@1"]}, "the daemons of a runtime are immutable"),
    ("Runtime", {"roll": None}, "a roll cannot be removed: set spec.roll.stopped to roll it back"),
    ("Runtime", {"roll": {"zones": ["b"]}}, "the order of zones and tiers is immutable"),
]


@pytest.mark.parametrize(("kind", "spec", "message"), CHANGES, ids=_row_id)
async def test_rejects_change_of_immutable_field_with_our_message(
    plane_with_crds: ControlPlane, kind: str, spec: Object, message: str
) -> None:
    async with open_client(plane_with_crds) as client:
        before = resource(kind, "")
        with suppress(AlreadyExists):
            await client.create(CUSTOM_RESOURCES[kind], before, manager=CLI_MANAGER)
        after = {
            **await client.get(CUSTOM_RESOURCES[kind], before["metadata"]["name"]),
            "spec": resource(kind, "", **spec)["spec"],
        }
        after["metadata"].pop("managedFields")
        path = CUSTOM_RESOURCES[kind].path("", before["metadata"]["name"])
        with pytest.raises(ApiError) as refused:
            await client.raw("PUT", path, query={"dryRun": "All"}, body=msgspec.json.encode(after))
        assert message in refused.value.text()


class Kubectl(NamedTuple):
    """Runs kubectl in the namespace of a project."""

    program: Path
    kubeconfig: Path
    project: str

    async def __call__(self, *words: str, standard_input: str = "", code: int = 0) -> str:
        process = await asyncio.create_subprocess_exec(
            self.program, "kubectl", "--namespace", self.project, *words,
            env={**os.environ, "KUBECONFIG": str(self.kubeconfig)},
            stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT,
        )  # fmt: skip
        sent, _ = await process.communicate(standard_input.encode())
        assert process.returncode == code, sent.decode()
        return sent.decode()


@asynccontextmanager
async def kubectl(plane: ControlPlane, folder: Path) -> AsyncGenerator[Kubectl]:
    programs = build_engine(Path(setting_value("cache")), Progress())
    async with open_client(plane) as client:
        yield Kubectl(programs.kubernetes, plane.kubeconfig(folder), await new_project(client))


async def test_crds_install_by_server_side_apply(plane_with_crds: ControlPlane, tmp_path: Path) -> None:
    async with kubectl(plane_with_crds, tmp_path) as run:
        text = yaml.safe_dump_all(crds())
        sent = await run("apply", "--server-side", "--force-conflicts", "-f", "-", standard_input=text)
        assert sent.count("serverside-applied") == len(KINDS)


async def test_kubectl_get_shows_columns_short_names_and_category(
    plane_with_crds: ControlPlane, tmp_path: Path
) -> None:
    async with kubectl(plane_with_crds, tmp_path) as run:
        created = [resource(kind, run.project) for kind in WORKLOADS]
        await run("create", "-f", "-", standard_input=yaml.safe_dump_all(created))
        for kind, resource_ in WORKLOADS.items():
            for name in resource_.SHORT_NAMES:
                header, *lines = (await run("get", name)).splitlines()
                assert header.split() == [
                    "NAME",
                    *(each.upper() for column, _, _ in resource_.PRINTER_COLUMNS for each in column.split()),
                ]
                assert [line.split()[0] for line in lines] == ["a"], kind
        listed = await run("get", CATEGORY, "-o", "name")
        assert {line.partition(".")[0] for line in listed.splitlines()} >= {
            each.plural()[:-1] for each in WORKLOADS.values()
        }


async def test_kubectl_scale_dry_run_and_diff(plane_with_crds: ControlPlane, tmp_path: Path) -> None:
    async with kubectl(plane_with_crds, tmp_path) as run:
        for kind, resource_ in WORKLOADS.items():
            document = resource(kind, run.project)
            text = yaml.safe_dump(document)
            assert "dry run" in await run("apply", "--dry-run=server", "-f", "-", standard_input=text)
            assert "created" in await run("apply", "-f", "-", standard_input=text)
            assert await run("diff", "-f", "-", standard_input=text) == ""
            document["spec"]["image"] = "other:2"
            assert "+  image: other:2" in await run("diff", "-f", "-", standard_input=yaml.safe_dump(document), code=1)
            if resource_.SCALABLE:
                await run("scale", f"{resource_.plural()}/a", "--replicas=3")
                assert await run("get", resource_.plural(), "a", "-o", "jsonpath={.spec.replicas}") == "3"


@pytest.mark.parametrize("kind", KINDS)
async def test_kubectl_explain_describes_every_field(plane_with_crds: ControlPlane, tmp_path: Path, kind: str) -> None:
    resource_ = KINDS[kind]
    async with kubectl(plane_with_crds, tmp_path) as run:
        sent = await run("explain", f"{resource_.plural()}.spec")
        known = {each.encode_name for each in msgspec.structs.fields(resource_.spec_type())}
        assert {line.split()[0] for line in sent.splitlines() if line.startswith("  ") and "\t<" in line} == known
        assert "<no description>" not in sent
