"""The API server is killed and restarted under a stream of submissions: nothing that was accepted is lost.

For some seconds after its start an API server has not read its roles, and denies everything to the desk.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from string import Template

import aiohttp
import pytest
import yaml

from control_plane import ControlPlane, control_plane
from crash_harness import start_desk
from desk_fixtures import project_with_pod_quota, wait_ledger_holds
from pincompute.api.names import DESK, ENGINE, SUBMISSION_ANNOTATION
from pincompute.base.progress import Progress
from pincompute.base.settings import setting_value
from pincompute.controller.resources import CUSTOM_RESOURCES
from pincompute.desk.store import outbox
from pincompute.desk.store.database import Database, open_database
from pincompute.desk.store.record import SubmissionState
from pincompute.engine.bootstrap import roles_granted_to
from pincompute.engine.build import build_engine
from pincompute.engine.manifest_files import MANIFESTS
from pincompute.kube.client import Client
from pincompute.kube.resource import CLUSTER_ROLE_BINDINGS, CLUSTER_ROLES, NAMESPACES, ROLE_BINDINGS, ROLES
from record_fixtures import submissions_of
from workloads import HELLO, cluster_client

pytestmark = pytest.mark.cluster

RESTARTS = 3
SUBMISSIONS_PER_RESTART = 12
CLIENTS = 4
PODS = 2
"""Of each workload: one replica, and one more during a rollout."""
TIMEOUT_S = 120


@pytest.fixture
def own_plane(tmp_path: Path) -> Iterator[ControlPlane]:
    """A control plane that no other test uses."""
    programs = build_engine(Path(setting_value("cache")), Progress())
    with control_plane(programs.kubernetes, tmp_path) as plane:
        yield plane


async def test_nothing_accepted_is_lost(own_plane: ControlPlane, tmp_path: Path) -> None:
    where = str(tmp_path / "desk.db")
    async with cluster_client(own_plane) as client:
        await _grant_rights_of_the_desk(client)
        project = await project_with_pod_quota(client, 1_000)
        async with start_desk(own_plane, tmp_path, where, user=DESK) as desk, asyncio.timeout(TIMEOUT_S):
            numbers = itertools.count()
            await _submit(desk.http, project, f"w{next(numbers)}")
            for _ in range(RESTARTS):
                own_plane.api_server.restart()
                names = [f"w{next(numbers)}" for _ in range(SUBMISSIONS_PER_RESTART)]
                clients = [_submit_all(desk.http, project, names[each::CLIENTS]) for each in range(CLIENTS)]
                await asyncio.gather(*clients)
            database = await open_database(where)
            await _wait_delivered(database)
            names = [f"w{number}" for number in range(next(numbers))]
            assert await _states(database, project, names) == {each: [SubmissionState.DELIVERED] for each in names}
            await wait_ledger_holds(database, project, PODS * len(names))
            await database.close()
        workloads = (await client.list(CUSTOM_RESOURCES["PinterestService"], project)).items
        assert {each["metadata"]["name"] for each in workloads} == set(names)
        assert all(each["metadata"]["annotations"][SUBMISSION_ANNOTATION] for each in workloads)


async def _grant_rights_of_the_desk(client: Client) -> None:
    access = yaml.safe_load_all(Template((MANIFESTS / "access.yaml").read_text()).safe_substitute())
    resources = {each.kind: each for each in (CLUSTER_ROLES, CLUSTER_ROLE_BINDINGS, ROLES, ROLE_BINDINGS)}
    granted = roles_granted_to(access, DESK)
    for namespace in {each["metadata"]["namespace"] for each in granted if "namespace" in each["metadata"]}:
        await client.apply({"metadata": {"name": namespace}}, NAMESPACES, manager=ENGINE)
    for each in granted:
        await client.apply(each, resources[each["kind"]], manager=ENGINE)


async def _submit_all(http: aiohttp.ClientSession, project: str, names: list[str]) -> None:
    for name in names:
        await _submit(http, project, name)


async def _submit(http: aiohttp.ClientSession, project: str, name: str) -> None:
    """Submits until the desk accepts: while the cluster does not respond, it refuses with a 503 and records nothing."""
    text = HELLO.replace("{name: hello}", f"{{name: {name}}}")
    while True:
        headers = {"Idempotency-Key": name}
        async with http.post(f"/v1/projects/{project}/submissions", data=text.encode(), headers=headers) as response:
            if response.status < 300:
                return
            assert response.status == 503, await response.text()


async def _wait_delivered(database: Database) -> None:
    # The database of another process can only be polled.
    while await database.transact(partial(outbox.undelivered_entries, cluster="main")):  # noqa: ASYNC110
        await asyncio.sleep(0.1)


async def _states(database: Database, project: str, names: list[str]) -> dict[str, list[SubmissionState]]:
    found = {}
    for name in names:
        submissions = await database.transact(partial(submissions_of, project=project, name=name))
        found[name] = [each.state for each in submissions]
    return found
