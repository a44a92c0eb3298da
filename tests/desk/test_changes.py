"""Changes of workloads over HTTP with a real API server: applied, recorded, and refused on conflicts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from control_plane import ControlPlane
from desk_fixtures import AUTH_HEADERS, DeskWorld, desk_world
from pincompute.api.change import Change, Pause, Restart, Resume, Rollback, Scale
from pincompute.api.names import DESK, ENGINE
from pincompute.api.workload import Workload
from pincompute.base.problem import Refused
from pincompute.cli.desk_client import open_desk_client
from pincompute.controller.resources import CUSTOM_RESOURCES
from pincompute.desk.store.record import SubmissionState
from pincompute.platforms.kubernetes.changes import write_change
from pincompute.platforms.kubernetes.workloads import WorkloadClient
from workloads import HELLO

pytestmark = pytest.mark.cluster

SERVICE = CUSTOM_RESOURCES["PinterestService"]


async def spec(here: DeskWorld) -> dict[str, Any]:
    found: dict[str, Any] = (await here.client.get(SERVICE, "hello", here.project))["spec"]
    return found


async def test_change_is_applied_and_recorded(plane: ControlPlane, tmp_path: Path) -> None:
    async with desk_world(plane, tmp_path) as here, open_desk_client(here.context) as port:
        await port.submit(HELLO, "hello.yaml", here.project)
        changed = await port.change(here.project, "hello", Scale(by="ann", replicas=3))
        assert (changed.summary.label, changed.messages, changed.written) == ("hello@1", ["1 replica -> 3"], True)
        assert (await spec(here))["replicas"] == 3
        again = await port.change(here.project, "hello", Scale(by="ann", replicas=3))
        assert (again.summary.label, again.written) == ("hello@1", False)
        with pytest.raises(Refused, match="no earlier revision"):
            await port.change(here.project, "hello", Rollback())
        assert [state for _, state in await here.outcomes("hello")][-1] is SubmissionState.REFUSED


async def test_edit_removes_fields_of_other_managers(plane: ControlPlane, tmp_path: Path) -> None:
    async with desk_world(plane, tmp_path) as here, open_desk_client(here.context) as port:
        await port.submit(HELLO, "hello.yaml", here.project)
        paused = {"spec": {"rollout": {"paused": "bob"}}}
        await here.client.patch(SERVICE, "hello", here.project, paused, style="merge", manager="kubectl-edit")
        changed = await port.change(here.project, "hello", Resume(by="ann"))
        assert changed.messages == ["resumed; was paused by bob"]
        assert not (await spec(here)).get("rollout", {}).get("paused")


async def test_deploy_keeps_an_edit(plane: ControlPlane, tmp_path: Path) -> None:
    async with desk_world(plane, tmp_path) as here, open_desk_client(here.context) as port:
        await port.submit(HELLO, "hello.yaml", here.project)
        for change in (Pause(by="ann"), Restart(), Scale(replicas=4)):
            await port.change(here.project, "hello", change)
        await port.submit(HELLO.replace("hello:dev", "hello:next"), "hello.yaml", here.project)
        written = await spec(here)
        assert (written["rollout"]["paused"], written["rollout"]["restarts"]) == ("ann", 1)
        assert (written["image"], written.get("replicas", 1)) == ("hello:next", 1)


async def test_concurrent_edits_conflict(plane: ControlPlane, tmp_path: Path) -> None:
    async with desk_world(plane, tmp_path) as here, open_desk_client(here.context) as port:
        await port.submit(HELLO, "hello.yaml", here.project)
        read = await WorkloadClient(here.client).get_workload(here.project, "hello")
        await port.change(here.project, "hello", Scale(replicas=3))
        with pytest.raises(Refused, match="hello was changed by another writer in the meantime"):
            await _amend(here, read, Scale(replicas=5))
        assert (await spec(here))["replicas"] == 3


async def test_status_updates_do_not_conflict_with_an_edit(plane: ControlPlane, tmp_path: Path) -> None:
    async with desk_world(plane, tmp_path) as here, open_desk_client(here.context) as port:
        await port.submit(HELLO, "hello.yaml", here.project)
        read = await WorkloadClient(here.client).get_workload(here.project, "hello")
        status = {"status": {"replicas": 1}}
        await here.client.patch(
            SERVICE, "hello", here.project, status, style="merge", manager=ENGINE, subresource="status"
        )
        await _amend(here, read, Scale(replicas=5))
        assert (await spec(here))["replicas"] == 5


async def _amend(here: DeskWorld, read: Workload, change: Change) -> None:
    await write_change(here.client, read, change, manager=DESK, submission="")


async def test_invalid_change_is_refused(plane: ControlPlane, tmp_path: Path) -> None:
    async with desk_world(plane, tmp_path) as here:
        await here.submit(HELLO)
        path = f"/v1/projects/{here.project}/workloads/hello/changes"
        for body, told in ((b"{", "invalid change"), (b'{"change": "explode"}', "explode")):
            async with here.http.post(path, data=body, headers=AUTH_HEADERS) as answer:
                said = msgspec.json.decode(await answer.read())
                assert (answer.status, told in said["errors"][0]["detail"]) == (422, True)
        async with here.http.post(
            path.replace("hello", "helo"), data=b'{"change": "resume"}', headers=AUTH_HEADERS
        ) as answer:
            said = msgspec.json.decode(await answer.read())
            assert (answer.status, said["errors"][0]["next"]) == (404, "did you mean hello?")


async def test_detail_is_the_same_by_desk_and_by_kubeconfig(plane: ControlPlane, tmp_path: Path) -> None:
    async with desk_world(plane, tmp_path) as here, open_desk_client(here.context) as port:
        await port.submit(HELLO, "hello.yaml", here.project)
        found = await port.get_workload(here.project, "hello")
        assert found == await WorkloadClient(here.client).get_workload(here.project, "hello")
        account = await port.describe(here.project, "hello")
        assert (account.summary.label, account.replicas, account.natives) == ("hello@1", [], [])
        answer = await port.explain(here.project, "hello")
        assert (answer.is_problem, answer.label) == (False, "hello@1")


async def test_why_of_a_deleted_workload_says_who_deleted_it(plane: ControlPlane, tmp_path: Path) -> None:
    async with desk_world(plane, tmp_path) as here, open_desk_client(here.context) as port:
        with pytest.raises(Refused, match="has no workload 'hello'"):
            await port.explain(here.project, "hello")
        await port.submit(HELLO, "hello.yaml", here.project)
        await port.delete(here.project, "hello")
        with pytest.raises(Refused, match=r"workload 'hello' of project .* was deleted by .* at 20") as refused:
            await port.explain(here.project, "hello")
        assert refused.value.problems[0].next == f"pin audit --project {here.project}"
