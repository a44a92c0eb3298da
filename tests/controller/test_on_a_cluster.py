"""Our kinds and their natives on a real API server: what it takes, what it refuses and in whose words."""

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
from pincompute.api.admission import admit
from pincompute.api.documents import Document, read
from pincompute.api.kinds import KINDS, WORKLOADS
from pincompute.api.manifests import crds
from pincompute.api.names import CATEGORY, HAND
from pincompute.api.noun import annotation_faults, label_faults
from pincompute.base.settings import setting
from pincompute.controller.resources import NOUNS
from pincompute.engine.build import build
from pincompute.engine.progress import Progress
from pincompute.kube import request as requests
from pincompute.kube.client import Client
from pincompute.kube.errors import AlreadyExists, ApiError
from pincompute.kube.request import Target
from pincompute.kube.resource import CONFIG_MAPS, NAMESPACES, Resource
from pincompute.objects.content import Object, identity
from strategies import nouns
from workloads import cluster, new_project
from worlds import alone, plan

pytestmark = pytest.mark.cluster

EXAMPLES = Path(__file__).parents[2] / "examples"
DOCUMENTS = [
    (f"{file.relative_to(EXAMPLES)}:{document.content['metadata']['name']}", document)
    for file in sorted(EXAMPLES.rglob("*.yaml"))
    for document in read(file.read_text(), file.name)
]
ELSEWHERE = {"kubeflow.org"}
"""Groups whose natives are checked where their definitions are installed; every other group must be known here."""

each_example = pytest.mark.parametrize("document", [each for _, each in DOCUMENTS], ids=[name for name, _ in DOCUMENTS])


@pytest.fixture(scope="module")
def served(plane: ControlPlane) -> ControlPlane:
    """It knows our kinds."""

    async def install() -> None:
        async with cluster(plane):
            pass

    asyncio.run(install())
    return plane


def client_of(plane: ControlPlane) -> Client:
    return Client(plane.access(), agent="tests")


class Server:
    """Asked without anything being kept."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._known: dict[str, dict[str, Resource]] = {}

    async def dry_run(self, native: Object) -> Object:
        """As it would be; refused where a field is unknown or wrong."""
        resource = (await self._resources(native["apiVersion"]))[native["kind"]]
        asked = requests.apply(Target.of(resource, native), native, "tests", force=True)
        query = {**asked.query, "dryRun": "All"}
        said = await self._client.raw(asked.method, asked.path, query=query, body=asked.body, content=asked.content)
        found: Object = json.loads(said)
        return found

    async def _resources(self, version: str) -> dict[str, Resource]:
        if version not in self._known:
            said = json.loads(
                await self._client.raw("GET", f"/apis/{version}" if "/" in version else f"/api/{version}")
            )
            group, _, number = version.rpartition("/")
            self._known[version] = {
                each["kind"]: Resource(group, number, each["name"], each["kind"], each["namespaced"])
                for each in said["resources"]
                if "/" not in each["name"]
            }
        return self._known[version]


async def in_a_project(client: Client, noun: Any) -> None:
    """Natives of a project lie in the namespace that is called like it."""
    name = noun.metadata.namespace or noun.metadata.name
    with suppress(AlreadyExists):
        await client.create(NAMESPACES, {"metadata": {"name": name}}, manager="tests")


@each_example
async def test_the_natives_of_an_example_pass(served: ControlPlane, document: Document) -> None:
    async with client_of(served) as client:
        server = Server(client)
        noun: Any = admit(document, await new_project(client))
        owner = msgspec.structs.replace(
            noun, metadata=msgspec.structs.replace(noun.metadata, uid="a-uid", generation=1)
        )
        await in_a_project(client, noun)
        planned = plan(alone(owner))
        assert planned.problems == ()
        for native in planned.wanted:
            if native["apiVersion"].partition("/")[0] in ELSEWHERE:
                continue
            found = await server.dry_run(native)
            assert not dropped(native, found), identity(native)


@pytest.mark.parametrize("kind", KINDS)
async def test_the_natives_of_any_valid_document_pass(served: ControlPlane, kind: str) -> None:
    """Whatever admission lets through; a template, which may hold anything, aside."""
    async with client_of(served) as client:
        server, project = Server(client), await new_project(client)
        for noun in drawn(kind):
            place = {} if noun.CLUSTER_WIDE else {"namespace": project}
            owner = msgspec.structs.replace(noun, metadata=msgspec.structs.replace(noun.metadata, **place))
            await in_a_project(client, owner)
            for native in plan(alone(owner)).wanted:
                if native["apiVersion"].partition("/")[0] not in ELSEWHERE:
                    await server.dry_run(native)


def drawn(kind: str) -> list[Any]:
    found = []

    @settings(max_examples=25, deadline=None, database=None, derandomize=True, phases=[Phase.generate])
    @given(nouns(kind))
    def keep(noun: Any) -> None:
        if not getattr(noun.spec, "template", {}):
            found.append(noun)

    keep()
    return found


MARKS = (
    "a", "A", "a.b", "a_b", "-a", "a-", "a b", "", "é", "a" * 63, "a" * 64, "a\n", "example.com/a", "Example.com/a",
    "a..b/c", "-a/b", "a-/b", "a/b/c", "/a", "a/", "a/-", "a/" + "b" * 64, "a" * 253 + "/b", "a" * 254 + "/b",
)  # fmt: skip


async def test_labels_and_annotations_are_those_that_the_server_takes(served: ControlPlane) -> None:
    asked: list[Object] = [{"labels": {name: "a"}} for name in MARKS]
    asked += [{"labels": {"a": value}} for value in MARKS]
    asked += [{"annotations": {name: "a b"}} for name in MARKS]
    async with cluster(served) as client:
        project = await new_project(client)
        taken: list[Object] = []
        ours: list[Object] = []
        for each in asked:
            metadata = {"name": "marked", "namespace": project, **each}
            with suppress(ApiError):
                await client.create(CONFIG_MAPS, {"metadata": metadata}, manager=HAND, dry_run=True)
                taken.append(each)
            if not [*label_faults(each.get("labels", {}), ()), *annotation_faults(each.get("annotations", {}), ())]:
                ours.append(each)
    assert ours == taken
    assert asked[0] in taken


async def test_any_text_survives(served: ControlPlane) -> None:
    """An apply is YAML, in which some characters are line breaks and others are refused."""
    text = "".join(chr(each) for each in range(0x20, 0x10000) if not 0xD800 <= each < 0xE000)
    async with client_of(served) as client:
        metadata = {"name": "a", "namespace": await new_project(client)}
        await client.apply({"metadata": metadata, "data": {"a": text}}, CONFIG_MAPS, manager="tests")
        assert (await client.get(CONFIG_MAPS, "a", metadata["namespace"]))["data"] == {"a": text}


def dropped(said: Any, found: Any, path: str = "") -> list[str]:
    """What the server did not keep."""
    if isinstance(said, dict) and isinstance(found, dict):
        return [miss for name in said for miss in dropped(said[name], found.get(name), f"{path}.{name}")]
    if isinstance(said, list) and isinstance(found, list):
        return [
            miss
            for index, each in enumerate(said)
            for miss in dropped(each, dict(enumerate(found)).get(index), f"{path}[{index}]")
        ]
    return [path] if found is None and said not in (None, "", 0, False, [], {}) else []


@each_example
async def test_an_example_is_planned_the_same_once_the_server_has_it(served: ControlPlane, document: Document) -> None:
    """The defaults of the CRD are those of the types, and neither drops a field."""
    async with client_of(served) as client:
        noun: Any = admit(document, await new_project(client))
        await in_a_project(client, noun)
        content = {**document.content, "metadata": msgspec.to_builtins(noun.metadata)}
        seen = msgspec.convert(await Server(client).dry_run(content), type(noun))
        written = msgspec.structs.replace(noun, metadata=seen.metadata)
        assert seen.spec == noun.spec
        assert plan(alone(seen)) == plan(alone(written))


NEW: dict[str, Object] = {
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
    """As a person would write it who uses kubectl; what is None is left out."""
    said = {name: value for name, value in {**NEW[kind], **spec}.items() if value is not None}
    place = {} if KINDS[kind].CLUSTER_WIDE else {"namespace": project}
    metadata = {"name": name or NAMES.get(kind, "a"), **place}
    return {"apiVersion": "pinterest.com/v1", "kind": kind, "metadata": metadata, "spec": said}


def test_every_kind_is_here() -> None:
    assert NEW.keys() == KINDS.keys()


REFUSED: list[tuple[str, str, Object, str]] = [
    *((kind, "", {"image": None}, "spec.image is missing: write image: NAME:TAG") for kind in WORKLOADS),
    *((kind, "a" * (KINDS[kind].MAX_NAME + 1), {}, f"a name has at most {KINDS[kind].MAX_NAME}") for kind in KINDS
      if kind not in NAMES),
    *((kind, "a.b", {}, f"a name has at most {KINDS[kind].MAX_NAME} {KINDS[kind].NAME_WORDS}") for kind in KINDS),
    *((kind, "", {"tier": "best"}, 'Unsupported value: "best"') for kind in WORKLOADS),
    ("PinterestService", "", {"replicas": 10**9}, "should be less than or equal to 10000"),
    ("PinterestService", "", {"port": 70000}, "should be less than or equal to 65535"),
    ("PinterestService", "", {"port": None}, "Required value"),
    ("PinterestService", "", {"ports": [{"name": "x", "port": 8080}]}, "spec.ports names the port of spec.port again"),
    ("PinterestService", "", {"memory": "lots"}, "spec.memory"),
    ("PinterestService", "", {"memory": -1}, "spec.memory"),
    ("PinterestService", "", {"unavailable": "2"}, "spec.unavailable"),
    ("PinterestService", "", {"unavailable": "101%"}, "spec.unavailable"),
    ("PinterestService", "", {"rollout": {"surge": -1}}, "spec.rollout.surge"),
    ("PinterestStatefulSet", "", {"ports": [{"name": "x", "port": 5432}]}, "names the port of spec.port again"),
    ("PinterestStatefulSet", "", {"claims": {"data": {"size": "1Gi", "path": "/a"}}}, "is the claim 'data' already"),
    ("PinterestJobSet", "", {"items": ["a"]}, "write one of the two: spec.tasks or spec.items"),
    ("PinterestJobSet", "", {"tasks": None}, "write one of the two: spec.tasks or spec.items"),
    ("PinterestJobSet", "", {"parallelism": 4}, "spec.parallelism is larger than the number of tasks"),
    ("PinterestCronJob", "", {"schedule": "often"}, "spec.schedule has five fields"),
    ("PinterestCronJob", "", {"timeZone": "a b"}, "spec.timeZone is the name of a time zone"),
    ("PinterestDaemon", "", {"tier": "preemptible"}, "a daemon goes before every tier"),
    ("PinterestDaemon", "", {"wholeNode": True}, "a daemon shares its node"),
    ("PinterestTrainingJob", "", {"roles": {"chief": {}}}, "pytorch has master and worker"),
    ("PinterestTrainingJob", "", {"roles": {"worker": {}}}, "both say how many there are"),
    ("PinterestTrainingJob", "", {"script": "a", "command": ["b"]}, "both say what to run"),
    ("Project", "kube-a", {}, "this namespace is the cluster's own"),
    ("Project", "default", {}, "this namespace is the cluster's own"),
    ("Project", "", {"quota": {}}, "spec.quota names no tier"),
]  # fmt: skip


def _words(row: Any) -> str:
    return row[:40] if isinstance(row, str) else ""


async def test_what_is_new_and_right_is_taken(served: ControlPlane) -> None:
    """Else the table of what is refused would say nothing."""
    async with client_of(served) as client:
        project = await new_project(client)
        for kind in NEW:
            await Server(client).dry_run(resource(kind, project))


@pytest.mark.parametrize(("kind", "name", "spec", "told"), REFUSED, ids=_words)
async def test_what_is_wrong_is_refused_in_our_words(
    served: ControlPlane, kind: str, name: str, spec: Object, told: str
) -> None:
    async with client_of(served) as client:
        project = await new_project(client)
        with pytest.raises(ApiError) as refused:
            await Server(client).dry_run(resource(kind, project, name, **spec))
        assert told in refused.value.text()


CHANGES: list[tuple[str, Object, str]] = [
    ("PinterestSidecar", {"image": "logs:2"}, "a part never changes: make its next version"),
    ("Runtime", {"parts": ["logs-2"]}, "a runtime never changes: make the one with the next number"),
    ("Runtime", {"roll": None}, "a roll is taken back by spec.roll.stopped"),
    ("Runtime", {"roll": {"zones": ["b"]}}, "the order of zones and tiers cannot change"),
]


@pytest.mark.parametrize(("kind", "spec", "told"), CHANGES, ids=_words)
async def test_what_may_not_change_is_refused_in_our_words(
    served: ControlPlane, kind: str, spec: Object, told: str
) -> None:
    async with client_of(served) as client:
        before = resource(kind, "")
        with suppress(AlreadyExists):
            await client.create(NOUNS[kind], before, manager=HAND)
        after = {
            **await client.get(NOUNS[kind], before["metadata"]["name"]),
            "spec": resource(kind, "", **spec)["spec"],
        }
        after["metadata"].pop("managedFields")
        path = NOUNS[kind].path("", before["metadata"]["name"])
        with pytest.raises(ApiError) as refused:
            await client.raw("PUT", path, query={"dryRun": "All"}, body=msgspec.json.encode(after))
        assert told in refused.value.text()


class Kubectl(NamedTuple):
    """Kubernetes' own command line, in a project."""

    program: Path
    kubeconfig: Path
    project: str

    async def __call__(self, *words: str, standard_input: str = "", code: int = 0) -> str:
        process = await asyncio.create_subprocess_exec(
            self.program, "kubectl", "--namespace", self.project, *words,
            env={**os.environ, "KUBECONFIG": str(self.kubeconfig)},
            stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT,
        )  # fmt: skip
        said, _ = await process.communicate(standard_input.encode())
        assert process.returncode == code, said.decode()
        return said.decode()


@asynccontextmanager
async def kubectl(plane: ControlPlane, folder: Path) -> AsyncGenerator[Kubectl]:
    programs = build(Path(setting("cache")), Progress())
    async with client_of(plane) as client:
        yield Kubectl(programs.kubernetes, plane.kubeconfig(folder), await new_project(client))


async def test_the_definitions_install_by_server_side_apply(served: ControlPlane, tmp_path: Path) -> None:
    async with kubectl(served, tmp_path) as run:
        text = yaml.safe_dump_all(crds())
        said = await run("apply", "--server-side", "--force-conflicts", "-f", "-", standard_input=text)
        assert said.count("serverside-applied") == len(KINDS)


async def test_columns_short_names_and_the_category(served: ControlPlane, tmp_path: Path) -> None:
    async with kubectl(served, tmp_path) as run:
        made = [resource(kind, run.project) for kind in WORKLOADS]
        await run("create", "-f", "-", standard_input=yaml.safe_dump_all(made))
        for kind, noun in WORKLOADS.items():
            for name in noun.SHORT_NAMES:
                header, *lines = (await run("get", name)).splitlines()
                assert header.split() == [
                    "NAME",
                    *(each.upper() for column, _, _ in noun.COLUMNS for each in column.split()),
                ]
                assert [line.split()[0] for line in lines] == ["a"], kind
        listed = await run("get", CATEGORY, "-o", "name")
        assert {line.partition(".")[0] for line in listed.splitlines()} >= {
            each.plural()[:-1] for each in WORKLOADS.values()
        }


async def test_scale_dry_run_and_diff(served: ControlPlane, tmp_path: Path) -> None:
    async with kubectl(served, tmp_path) as run:
        for kind, noun in WORKLOADS.items():
            document = resource(kind, run.project)
            text = yaml.safe_dump(document)
            assert "dry run" in await run("apply", "--dry-run=server", "-f", "-", standard_input=text)
            assert "created" in await run("apply", "-f", "-", standard_input=text)
            assert await run("diff", "-f", "-", standard_input=text) == ""
            document["spec"]["image"] = "other:2"
            assert "+  image: other:2" in await run("diff", "-f", "-", standard_input=yaml.safe_dump(document), code=1)
            if noun.SCALES:
                await run("scale", f"{noun.plural()}/a", "--replicas=3")
                assert await run("get", noun.plural(), "a", "-o", "jsonpath={.spec.replicas}") == "3"


@pytest.mark.parametrize("kind", KINDS)
async def test_explain_describes_every_field(served: ControlPlane, tmp_path: Path, kind: str) -> None:
    noun = KINDS[kind]
    async with kubectl(served, tmp_path) as run:
        said = await run("explain", f"{noun.plural()}.spec")
        known = {each.encode_name for each in msgspec.structs.fields(noun.spec_type())}
        assert {line.split()[0] for line in said.splitlines() if line.startswith("  ") and "\t<" in line} == known
        assert "<no description>" not in said
