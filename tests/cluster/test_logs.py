"""What programs print and write on a real node, read while they run, after they crashed, and when they are gone."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from busybox import IMAGE
from person import Person, all_gone
from pincompute.api.names import WORKLOAD
from pincompute.engine.platform import Platform
from pincompute.kube.client import Client
from pincompute.kube.kubeconfig import load
from pincompute.kube.resource import PODS
from real_platform import PATIENCE, until

pytestmark = pytest.mark.cluster

SERVICE = f"""\
apiVersion: pinterest.com/v1
kind: PinterestService
metadata: {{name: crasher}}
spec:
  image: {IMAGE}
  template: {{spec: {{securityContext: {{runAsUser: 65532}}}}}}
  port: 8080
  command: [sh, -c, 'echo begun; exit 3']
"""
BATCH = f"""\
apiVersion: pinterest.com/v1
kind: PinterestJobSet
metadata: {{name: counting}}
spec:
  image: {IMAGE}
  template: {{spec: {{securityContext: {{runAsUser: 65532}}}}}}
  tasks: 3
  command: [sh, -c, 'echo task $PIN_TASK; test $PIN_TASK != 1 || exit 4']
"""


@pytest.fixture
def person(real_platform: Platform, tmp_path: Path) -> Person:
    (tmp_path / "crasher.yaml").write_text(SERVICE)
    (tmp_path / "counting.yaml").write_text(BATCH)
    return Person(real_platform, tmp_path)


async def test_both_lives_of_a_program_are_told_with_what_was_between_them_also_when_it_is_gone(
    real_platform: Platform, person: Person
) -> None:
    async with Client(load(real_platform.home.kubeconfig), agent="tests") as client:
        await person.pin("deploy", "crasher.yaml", code=1)
        pod = await until(client, PODS, "me", lambda seen: _restarts(seen) >= 1 and _of(seen, "crasher"))
        copy = pod["metadata"]["name"].rpartition("-")[2]
        said = (await person.pin("logs", "crasher")).splitlines()
        assert said[:3] == ["begun", f"-- crasher/{copy} ended: exit 3, started again --", "begun"]
        assert (await person.pin("logs", "crasher", "--previous")).splitlines()[0] == "begun"
        assert "begun" in await person.pin(
            "logs", f"crasher/{copy}", "--kubeconfig", str(real_platform.home.kubeconfig)
        )
        await person.pin("delete", "crasher")
        async with asyncio.timeout(PATIENCE):
            await all_gone(client, PODS, "me", labels=f"{WORKLOAD}=crasher")
            said = [""]
            # Who keeps its lines hears of its end after we do.
            while not said[-1].endswith("its pod is gone --"):
                said = (await person.pin("logs", "crasher")).splitlines()
    assert said[:4] == ["-- crasher was deleted; these are its last lines --", "begun", *said[2:4]]
    assert said[2:4] == [f"-- crasher/{copy} ended: exit 3, started again --", "begun"]


async def test_a_task_of_a_batch_is_read_by_its_number(person: Person) -> None:
    await person.pin("deploy", "counting.yaml", code=1)
    said = (await person.pin("logs", "counting/1")).splitlines()
    assert said[0] == "task 1"
    assert said[-1] == "-- counting/1 ended: exit 4 --"
    everything = (await person.pin("logs", "counting")).splitlines()
    assert {"0 | task 0", "1 | task 1", "2 | task 2"} <= set(everything)
    assert "there are 0, 1, 2" in await person.pin("logs", "counting/7", code=1)
    await person.pin("delete", "counting")


def _of(pod: dict[str, object], workload: str) -> bool:
    metadata = pod["metadata"]
    assert isinstance(metadata, dict)
    return metadata.get("labels", {}).get(WORKLOAD) == workload


def _restarts(pod: dict[str, object]) -> int:
    status = pod.get("status", {})
    assert isinstance(status, dict)
    return sum(each["restartCount"] for each in status.get("containerStatuses", ()))
