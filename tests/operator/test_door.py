"""The operator's own door: health that tells a loop that stands still, metrics, and the story of an object."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

import aiohttp
import pytest

from control_plane import ControlPlane
from operated import CLUSTER, world
from pincompute.controller.view import View
from pincompute.kube.access import Access
from pincompute.kube.client import Client
from pincompute.operator.door import Door
from pincompute.operator.health import STALE, STILL, STUCK
from pincompute.operator.loops import Loops


async def ask(door: Door, *paths: str) -> list[tuple[int, str]]:
    port = await door.open("127.0.0.1:0")
    async with aiohttp.ClientSession(f"http://127.0.0.1:{port}") as session:
        answers = []
        for path in paths:
            async with session.get(path) as answer:
                answers.append((answer.status, await answer.text()))
    await door.close()
    return answers


async def test_a_process_that_waits_for_its_cluster_is_healthy_and_not_ready() -> None:
    answers = await ask(Door(), "/healthz", "/readyz", "/metrics", "/story/me/web")
    assert [status for status, _ in answers] == [200, 503, 503, 404]


class Case(NamedTuple):
    words: str
    healthz: int = 200
    readyz: int = 200
    age: float = 1
    still: float = 1
    stuck: float = 0
    complete: bool = True


@pytest.mark.parametrize(
    "case",
    [
        Case("leads; view 1 s old; 0 passes, 0 waiting, 0 failing"),
        Case("leads; view", readyz=503, complete=False),
        # To begin anew would bring no API server back.
        Case("the API server was not heard for 301 s", 200, 503, age=STALE + 1),
        Case("a watch has stood still for 601 s", 503, 503, still=STILL + 1),
        Case("0 wait, and no pass has ended for 121 s", 503, 503, stuck=STUCK + 1),
    ],
)
async def test_health(monkeypatch: pytest.MonkeyPatch, case: Case) -> None:
    loops = Loops(Client(Access("https://10.0.0.1"), "test"), CLUSTER)
    monkeypatch.setattr(loops.view, "ages", lambda: {"Pod": case.age})
    monkeypatch.setattr(loops.view, "still", lambda: case.still)
    monkeypatch.setattr(View, "complete", case.complete)
    monkeypatch.setattr(loops.planned, "stuck", lambda: case.stuck)
    door = Door()
    door.loops = loops
    (healthz, text), (readyz, _) = await ask(door, "/healthz", "/readyz")
    assert (healthz, readyz) == (case.healthz, case.readyz)
    assert text.startswith(case.words)


@pytest.mark.cluster
async def test_what_was_done_can_be_read(plane: ControlPlane) -> None:
    async with world(plane) as here:
        await here.write()
        await here.until("Progressing", 1)
        await here.settled()
        await here.write(breakGlass={"until": "2026-01-01T00:00:00Z", "by": "ann"})
        await here.until("GlassOverdue", 2)
        door = Door()
        door.loops = here.loops
        story, metrics, nobody = await ask(door, f"/story/{here.project}/hello", "/metrics", "/story/nobody")
    told: list[dict[str, Any]] = json.loads(story[1])
    assert told[0]["causes"] == ["its owner was written, and nobody has looked at that yet"]
    assert {"Create Deployment/hello", "Create Service/hello"} <= set(told[0]["steps"])
    assert told[0]["outcome"] == "wrote"
    assert told[0]["key"] == f"{here.project}/hello"
    assert nobody[0] == 404
    lines = metrics[1].splitlines()
    assert 'pincompute_passes_total{kind="Workload",outcome="wrote"} ' in metrics[1]
    assert 'pincompute_steps_total{kind="Deployment",verb="Create"} 1.0' in lines
    assert 'pincompute_api_requests_total{code="200",resource="deployments",verb="create"} 1.0' in lines
    assert "pincompute_leads 1.0" in lines
    assert f'pincompute_unreviewed{{overdue="true",project="{here.project}"}} 1.0' in lines
    assert any(line.startswith('pincompute_view_age_seconds{kind="Deployment"}') for line in lines)
    assert any(line.startswith('pincompute_pass_seconds_bucket{le="+Inf"}') for line in lines)
