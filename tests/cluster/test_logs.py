"""Logs on a real node: of running, crashed and deleted pods."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from busybox import IMAGE
from cli_user import CliUser, wait_all_gone
from pincompute.api.names import WORKLOAD_LABEL
from pincompute.engine.platform import Platform
from pincompute.kube.client import Client
from pincompute.kube.kubeconfig import load_kubeconfig
from pincompute.kube.resource import PODS
from real_platform import WAIT_TIMEOUT_S, wait_until

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
def person(real_platform: Platform, tmp_path: Path) -> CliUser:
    (tmp_path / "crasher.yaml").write_text(SERVICE)
    (tmp_path / "counting.yaml").write_text(BATCH)
    return CliUser(real_platform, tmp_path)


async def test_logs_show_restarts_and_survive_deletion(real_platform: Platform, person: CliUser) -> None:
    async with Client(load_kubeconfig(real_platform.home.kubeconfig), agent="tests") as client:
        await person.pin("deploy", "crasher.yaml", code=1)
        pod = await wait_until(client, PODS, "me", lambda seen: _restarts(seen) >= 1 and _of(seen, "crasher"))
        copy = pod["metadata"]["name"].rpartition("-")[2]
        output = (await person.pin("logs", "crasher")).splitlines()
        assert output[:3] == ["begun", f"-- crasher/{copy} ended: exit 3, restarted --", "begun"]
        assert (await person.pin("logs", "crasher", "--previous")).splitlines()[0] == "begun"
        assert "begun" in await person.pin(
            "logs", f"crasher/{copy}", "--kubeconfig", str(real_platform.home.kubeconfig)
        )
        await person.pin("delete", "crasher")
        async with asyncio.timeout(WAIT_TIMEOUT_S):
            await wait_all_gone(client, PODS, "me", labels=f"{WORKLOAD_LABEL}=crasher")
            output = [""]
            # The log store learns of the deletion later than this test.
            while not output[-1].endswith("pod deleted --"):
                output = (await person.pin("logs", "crasher")).splitlines()
    assert output[:4] == ["-- crasher was deleted; these are its last lines --", "begun", *output[2:4]]
    assert output[2:4] == [f"-- crasher/{copy} ended: exit 3, restarted --", "begun"]


async def test_logs_of_a_task_by_number(person: CliUser) -> None:
    await person.pin("deploy", "counting.yaml", code=1)
    output = (await person.pin("logs", "counting/1")).splitlines()
    assert output[0] == "task 1"
    assert output[-1] == "-- counting/1 ended: exit 4 --"
    everything = (await person.pin("logs", "counting")).splitlines()
    assert {"0 | task 0", "1 | task 1", "2 | task 2"} <= set(everything)
    assert "replicas with logs: 0, 1, 2" in await person.pin("logs", "counting/7", code=1)
    await person.pin("delete", "counting")


def _of(pod: dict[str, object], workload: str) -> bool:
    metadata = pod["metadata"]
    assert isinstance(metadata, dict)
    return metadata.get("labels", {}).get(WORKLOAD_LABEL) == workload


def _restarts(pod: dict[str, object]) -> int:
    status = pod.get("status", {})
    assert isinstance(status, dict)
    return sum(each["restartCount"] for each in status.get("containerStatuses", ()))
