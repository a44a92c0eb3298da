"""Every command that changes a workload, on a real node: its report is true, and no request fails."""

from __future__ import annotations

import asyncio
import os
import sys
import termios
from contextlib import suppress
from pathlib import Path

import aiohttp
import pytest

from busybox import IMAGE, TEMPLATE
from cli_user import CliUser, continuous_requests
from pincompute.api.names import WORKLOAD_LABEL
from pincompute.controller.resources import CUSTOM_RESOURCES
from pincompute.engine.platform import Platform
from pincompute.kube.client import Client
from pincompute.kube.kubeconfig import load_kubeconfig
from pincompute.kube.resource import PODS
from polling import until

pytestmark = pytest.mark.cluster

WEB = f"""\
apiVersion: pinterest.com/v1
kind: PinterestService
metadata: {{name: web}}
spec:
  image: {IMAGE}
  command: [sh, -c, 'trap exit TERM; httpd -f -p $PORT -h /etc/configuration & wait']
  configuration: {{index.html: hello}}
  port: 8080
  replicas: 2
  template: {TEMPLATE}
"""

RESIZE = f"""\
apiVersion: pinterest.com/v1
kind: PinterestJobSet
metadata: {{name: resize}}
spec:
  image: {IMAGE}
  command:
    - sh
    - -c
    - read TASK < /etc/task/number; case $TASK$PIN_ATTEMPT in 11|12) echo bad header; exit 3;; 21) exit 4;; esac
  tasks: 4
  retries: 0
  template: {TEMPLATE}
"""


async def pod_uids(client: Client, name: str) -> set[str]:
    pods = await client.list(PODS, "me", labels=f"{WORKLOAD_LABEL}={name}")
    return {each["metadata"]["uid"] for each in pods.items if "deletionTimestamp" not in each["metadata"]}


async def have_gone(client: Client, uids: set[str]) -> bool:
    return not uids & await pod_uids(client, "web")


async def test_all_verbs_of_a_service(real_platform: Platform, tmp_path: Path) -> None:
    person = CliUser(real_platform, tmp_path)
    (tmp_path / "web.yaml").write_text(WEB)
    async with Client(load_kubeconfig(real_platform.home.kubeconfig), agent="test") as client:
        await person.pin("deploy", "web.yaml")
        async with continuous_requests(person, "web") as failed:
            before = await pod_uids(client, "web")
            assert "2 replicas -> 3" in await person.pin("scale", "web", "3")
            assert before < await pod_uids(client, "web")
            assert "its replicas are recreated" in await person.pin("restart", "web")
            # The new replicas are ready; Kubernetes marks the last former one as deleted a moment later.
            await until(lambda: have_gone(client, before))
            await person.pin("pause", "web")
            (tmp_path / "web.yaml").write_text(WEB.replace(IMAGE, "busybox:nowhere"))
            assert "[Paused]" in await person.pin("deploy", "web.yaml", code=1)
            assert "[ImagePullFailed]" in await person.pin("resume", "web", code=1)
            output = await person.pin("why", "web", code=1)
            assert "image busybox:nowhere cannot be pulled" in output
            assert "action: you" in output
            assert "image busybox:nowhere -> busybox:test" in await person.pin("rollback", "web", "--to", "1")
        assert failed == []
        shown = await person.pin("show", "web")
        headings = ("conditions\n", "replicas\n", "Kubernetes objects\n", "events\n", "history\n")
        assert all(heading in shown for heading in headings)
        # Measured by the kubelet, or told why not yet.
        assert "  uses       " in shown.splitlines()[1]
        assert "no problem: 2 of 2 replicas ready" in await person.pin("why", "web")
        await person.pin("delete", "web")
        assert await person.pin("wait", "web", "--for", "gone") == "web is deleted\n"


async def test_shell_and_port_forward(real_platform: Platform, tmp_path: Path) -> None:
    person = CliUser(real_platform, tmp_path)
    (tmp_path / "web.yaml").write_text(WEB)
    await person.pin("deploy", "web.yaml")
    assert await person.pin("shell", "web", "--", "sh", "-c", "hostname; exit 7", code=7) in {
        f"{each}\n" for each in await pod_names(person, "web")
    }
    assert await person.pin("shell", "web", "--", "nonesuch", code=1) == (
        "web has no program 'nonesuch'  [ProgramUnknown]\n  next: pin shell web\n"
    )
    assert "no running replica 'absent' of web" in await person.pin("shell", "web/absent", code=1)
    # The size of the terminal is transmitted after the program has started.
    waits = 'until [ "$(stty size)" = "17 61" ]; do :; done; echo as large as that; exit 5\n'
    assert "\r\nas large as that\r\n" in await run_on_terminal(
        person, "shell", "web", keys=waits, size=(17, 61), code=5
    )
    async with person.pin_lines("port-forward", "web", ":8080") as lines:
        address = (await anext(lines)).split()[0]
        async with aiohttp.ClientSession() as session, session.get(f"{address}/index.html") as answer:
            assert await answer.text() == "hello"
    async with person.pin_lines("port-forward", "web", ":81") as lines:
        address = (await anext(lines)).split()[0]
        with pytest.raises(aiohttp.ClientError):
            async with aiohttp.ClientSession() as session, session.get(address):
                pass
        assert await anext(lines) == "nothing listens on port 81 of web  [PortNotListening]"
    await person.pin("delete", "web")


async def pod_names(person: CliUser, workload: str) -> set[str]:
    async with Client(load_kubeconfig(person.platform.home.kubeconfig), agent="test") as client:
        pods = await client.list(PODS, "me", labels=f"{WORKLOAD_LABEL}={workload}")
        return {each["metadata"]["name"] for each in pods.items}


async def run_on_terminal(person: CliUser, *words: str, keys: str, size: tuple[int, int], code: int) -> str:
    """Run `pin` on a pseudo-terminal of this size, type keys, and return the screen output."""
    here, there = os.openpty()
    termios.tcsetwinsize(there, size)
    before = termios.tcgetattr(there)
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "pincompute", *words, env=person.variables, stdin=there, stdout=there, stderr=there
    )
    # The terminal buffers input until it is read.
    os.write(here, keys.encode())
    assert await process.wait() == code
    assert termios.tcgetattr(there) == before
    os.close(there)
    seen = b""
    with suppress(OSError):
        while piece := os.read(here, 1 << 16):
            seen += piece
    os.close(here)
    return seen.decode()


async def test_failed_tasks_of_a_batch_are_rerun(real_platform: Platform, tmp_path: Path) -> None:
    person = CliUser(real_platform, tmp_path)
    (tmp_path / "resize.yaml").write_text(RESIZE)
    await person.pin("deploy", "resize.yaml", code=1)
    first, *failures = (await person.pin("get", "resize")).splitlines()
    assert first.startswith("resize@1  2 done  2 failed  of 4   ")
    assert [each.split("  next: ")[1] for each in failures] == ["pin logs resize/1", "pin logs resize/2"]
    assert '1  exit 3 "bad header"  tasks 1' in failures[0]
    output = await person.pin("why", "resize", code=1)
    assert "1 of 4 tasks failed with exit code 3 (task 1)" in output
    assert "next: pin rerun resize" in output
    output = await person.pin("rerun", "resize", code=1)
    assert "resize@1.2  attempt 2: the 2 tasks that failed" in output
    assert "resize@1.2  1 done, 1 failed; total 3 of 4 done, unfinished: 1" in output
    assert "resize@1.3  1 done; total 4 of 4 done" in await person.pin("rerun", "resize", "--task", "1")
    assert "no problem: 4 of 4 done" in await person.pin("why", "resize")
    await person.pin("delete", "resize")


async def test_cancelled_batch_keeps_results_and_logs_and_can_be_rerun(real_platform: Platform, tmp_path: Path) -> None:
    person = CliUser(real_platform, tmp_path)
    # The first task ends at once, and the others when they are told to.
    command = "read TASK < /etc/task/number; echo task $TASK; trap exit TERM; "
    command += "[ $TASK = 0 ] || [ $PIN_ATTEMPT = 2 ] || { sleep 1000 & wait; }"
    batch = RESIZE.replace("name: resize", "name: shrink")
    start, end = batch.index("    - read TASK"), batch.index("  tasks: 4")
    (tmp_path / "shrink.yaml").write_text(f"{batch[:start]}    - '{command}'\n{batch[end:]}")
    async with Client(load_kubeconfig(real_platform.home.kubeconfig), agent="test") as client:
        await person.pin("deploy", "shrink.yaml", "--no-wait")
        await until(lambda: _has_done_and_running(client, done=1, running=3), within=60)
        output = await person.pin("cancel", "shrink", "--because", "wrong input")
        assert "1 of 4 done, 3 cancelled; cancelled by" in output
        assert ": wrong input" in output
    assert "no problem: cancelled by" in await person.pin("why", "shrink")
    assert "task 0" in await person.pin("logs", "shrink/0")
    assert "already cancelled by" in await person.pin("cancel", "shrink")
    assert "3 done; total 4 of 4 done" in await person.pin("rerun", "shrink", "--reason", "Cancelled")
    assert "has ended already" in await person.pin("cancel", "shrink")
    await person.pin("delete", "shrink")


async def _has_done_and_running(client: Client, *, done: int, running: int) -> bool:
    status = (await client.get(CUSTOM_RESOURCES["PinterestJobSet"], "shrink", "me")).get("status", {})
    return (status.get("done"), status.get("running")) == (done, running)
