"""Changes of what is there, over HTTP against a real API server: made, on record, and never over somebody's head."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from control_plane import ControlPlane
from desks import SIGNED, World, world
from pincompute.api.change import Change, Pause, Restart, Resume, Rollback, Scale
from pincompute.api.names import DESK, ENGINE
from pincompute.api.workload import Workload
from pincompute.base.problem import Refused
from pincompute.cli.desk import desk_port
from pincompute.controller.amend import amend
from pincompute.controller.resources import NOUNS
from pincompute.controller.workloads import Workloads
from pincompute.submission.record import State
from workloads import HELLO

pytestmark = pytest.mark.cluster

SERVICE = NOUNS["PinterestService"]


async def spec(here: World) -> dict[str, Any]:
    found: dict[str, Any] = (await here.client.get(SERVICE, "hello", here.project))["spec"]
    return found


async def test_a_change_is_made_and_on_record(plane: ControlPlane, tmp_path: Path) -> None:
    async with world(plane, tmp_path) as here, desk_port(here.context) as port:
        await port.submit(HELLO, "hello.yaml", here.project)
        changed = await port.change(here.project, "hello", Scale(by="ann", copies=3))
        assert (changed.summary.label, changed.said, changed.written) == ("hello@2", ["1 copy -> 3"], True)
        assert (await spec(here))["replicas"] == 3
        again = await port.change(here.project, "hello", Scale(by="ann", copies=3))
        assert (again.summary.label, again.written) == ("hello@2", False)
        with pytest.raises(Refused, match="never otherwise"):
            await port.change(here.project, "hello", Rollback())
        assert [state for _, state in await here.outcomes("hello")][-1] is State.REFUSED


async def test_what_somebody_else_wrote_is_gone_when_an_edit_takes_it_away(plane: ControlPlane, tmp_path: Path) -> None:
    async with world(plane, tmp_path) as here, desk_port(here.context) as port:
        await port.submit(HELLO, "hello.yaml", here.project)
        paused = {"spec": {"rollout": {"paused": "bob"}}}
        await here.client.patch(SERVICE, "hello", here.project, paused, style="merge", manager="kubectl-edit")
        changed = await port.change(here.project, "hello", Resume(by="ann"))
        assert changed.said == ["goes on; it was paused by bob"]
        assert not (await spec(here)).get("rollout", {}).get("paused")


async def test_a_new_file_does_not_undo_an_edit(plane: ControlPlane, tmp_path: Path) -> None:
    async with world(plane, tmp_path) as here, desk_port(here.context) as port:
        await port.submit(HELLO, "hello.yaml", here.project)
        for change in (Pause(by="ann"), Restart(), Scale(copies=4)):
            await port.change(here.project, "hello", change)
        await port.submit(HELLO.replace("hello:dev", "hello:next"), "hello.yaml", here.project)
        written = await spec(here)
        assert (written["rollout"]["paused"], written["rollout"]["restarts"]) == ("ann", 1)
        assert (written["image"], written.get("replicas", 1)) == ("hello:next", 1)


async def test_two_at_once_are_not_both_believed(plane: ControlPlane, tmp_path: Path) -> None:
    async with world(plane, tmp_path) as here, desk_port(here.context) as port:
        await port.submit(HELLO, "hello.yaml", here.project)
        read = await Workloads(here.client).find(here.project, "hello")
        await port.change(here.project, "hello", Scale(copies=3))
        with pytest.raises(Refused, match="somebody else changed hello just now"):
            await _amend(here, read, Scale(copies=5))
        assert (await spec(here))["replicas"] == 3


async def test_a_status_that_moves_does_not_get_in_the_way(plane: ControlPlane, tmp_path: Path) -> None:
    async with world(plane, tmp_path) as here, desk_port(here.context) as port:
        await port.submit(HELLO, "hello.yaml", here.project)
        read = await Workloads(here.client).find(here.project, "hello")
        status = {"status": {"replicas": 1}}
        await here.client.patch(
            SERVICE, "hello", here.project, status, style="merge", manager=ENGINE, subresource="status"
        )
        await _amend(here, read, Scale(copies=5))
        assert (await spec(here))["replicas"] == 5


async def _amend(here: World, read: Workload, change: Change) -> None:
    await amend(here.client, read, change, manager=DESK, submission="")


async def test_what_is_no_change_is_refused_with_words(plane: ControlPlane, tmp_path: Path) -> None:
    async with world(plane, tmp_path) as here:
        await here.submit(HELLO)
        path = f"/v1/projects/{here.project}/workloads/hello/changes"
        for body, told in ((b"{", "no change that there is"), (b'{"change": "explode"}', "explode")):
            async with here.http.post(path, data=body, headers=SIGNED) as answer:
                said = msgspec.json.decode(await answer.read())
                assert (answer.status, told in said["errors"][0]["detail"]) == (422, True)
        async with here.http.post(
            path.replace("hello", "helo"), data=b'{"change": "resume"}', headers=SIGNED
        ) as answer:
            said = msgspec.json.decode(await answer.read())
            assert (answer.status, said["errors"][0]["next"]) == (404, "did you mean hello?")


async def test_all_that_is_known_is_told_by_either_way(plane: ControlPlane, tmp_path: Path) -> None:
    async with world(plane, tmp_path) as here, desk_port(here.context) as port:
        await port.submit(HELLO, "hello.yaml", here.project)
        found = await port.find(here.project, "hello")
        assert found == await Workloads(here.client).find(here.project, "hello")
        account = await port.account(here.project, "hello")
        assert (account.summary.label, account.copies, account.natives) == ("hello@1", [], [])
        answer = await port.why(here.project, "hello")
        assert (answer.wrong, answer.label) == (False, "hello@1")
