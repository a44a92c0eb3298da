"""Debugging on a real node: shells past the API server, files both ways, processes, and files of ended containers."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import msgspec
import pytest

from busybox import IMAGE, SECURITY
from cli_user import CliUser
from debug_sessions import NODE_TIMEOUT_S, debugger as debugger, deployed, echo, interactive, running_part
from pincompute.cli.ps import ReplicaReport
from pincompute.engine.nodes.mounts import mounts
from pincompute.engine.platform import Platform
from polling import until

pytestmark = pytest.mark.cluster

BATCH = f"""\
apiVersion: pinterest.com/v1
kind: PinterestJobSet
metadata: {{name: NAME}}
spec:
  image: {IMAGE}
  command: [sh, -c, exit 3]
  tasks: 1
  retries: 0
  template: {{spec: {{securityContext: {SECURITY}}}}}
"""


async def test_sends_and_receives_files(debugger: CliUser) -> None:
    source = debugger.folder / "conf"
    (source / "deep").mkdir(parents=True)
    (source / "deep/file").write_bytes(bytes(range(256)) * 4_000)
    (source / "link").symlink_to("deep/file")
    async with deployed(debugger, "copied"):
        assert await debugger.pin("cp", "conf", "copied:/data") == ""
        assert (
            await debugger.pin("shell", "copied", "--", "sh", "-c", "wc -c < /data/conf/link; id -u")
            == "1024000\n1000\n"
        )
        assert await debugger.pin("cp", "copied:/data/conf", "back") == ""
        assert (debugger.folder / "back/deep/file").read_bytes() == (source / "deep/file").read_bytes()
        assert (debugger.folder / "back/link").readlink() == Path("deep/file")
        listed = await debugger.pin("files", "copied", "/data/conf")
        assert "link -> deep/file" in listed
        # With the rights of the container's user, in a container that sees its own root only.
        assert await debugger.pin("cp", "conf", "copied:/bin", code=1) == "conf: Permission denied  [FilesNotCopied]\n"
        assert (
            await debugger.pin("cp", "copied:/absent", ".", code=1)
            == "/absent: No such file or directory  [FilesNotCopied]\n"
        )
        await debugger.pin("shell", "copied", "--", "ln", "-s", "/../../../etc/hostname", "/data/climbing")
        name = (await debugger.pin("shell", "copied", "--", "hostname")).strip()
        assert await debugger.pin("cp", "copied:/data/climbing", "hostname") == ""
        assert (debugger.folder / "hostname").read_text().strip() == name
        audit = await debugger.pin("audit")
        assert "copied /data/climbing from a replica" in audit


async def test_shows_processes_and_sockets(debugger: CliUser) -> None:
    async with deployed(debugger, "seen"):
        text = await debugger.pin("ps", "seen")
        assert "httpd -f -p 8080" in text
        assert "LISTEN" in text
        (found,) = msgspec.json.decode(await debugger.pin("ps", "seen", "-o", "json"), type=list[ReplicaReport])
        assert {1} < {each.pid for each in found.report.processes}
        assert {each.user for each in found.report.processes} == {1000}
        (listening,) = (each for each in found.report.sockets if each.local.endswith(":8080"))
        assert listening.pid in {each.pid for each in found.report.processes}


async def test_reads_files_of_an_ended_container(debugger: CliUser) -> None:
    async with deployed(debugger, "ended", BATCH, code=1):
        assert "about" in await debugger.pin("files", "ended", "/tmp", "--ended")
        assert await debugger.pin("cp", "ended:/tmp/about", ".", "--ended") == ""
        assert (debugger.folder / "about").read_text() == "a folder to write to"
        # The image has absolute links, which are of no use here, and could lead anywhere.
        assert "leads out of the folder" in await debugger.pin("cp", "ended:/bin", "programs", "--ended")
        assert (debugger.folder / "programs/busybox").stat().st_mode & 0o777 == 0o755
        assert not (debugger.folder / "programs/sh").is_symlink()
        assert "no ended replica" in await debugger.pin("files", "ended/absent", "--ended", code=1)
        assert "can only be read" in await debugger.pin("cp", "left", "ended:/tmp", "--ended", code=2)
        # Its mounts have gone with the helpers.
        assert not [each for each in mounts() if "pin-debug-" in str(each.point)]


async def test_killed_agent_ends_its_sessions_and_a_shell_has_another_way(
    real_platform: Platform, debugger: CliUser
) -> None:
    async with (
        deployed(debugger, "cut"),
        interactive(debugger, "shell", "cut", "--", "sh", "-c", "cat; sleep 4711") as shell,
    ):
        assert await echo(shell, "before") == "before"
        agent = running_part(real_platform, "debug")
        os.kill(agent, signal.SIGSTOP)
        try:
            told = await debugger.pin("shell", "cut", "--", "echo", "still here")
        finally:
            os.kill(agent, signal.SIGKILL)
        assert "through the API server" in told
        assert told.endswith("still here\n")
        output, _ = await shell.communicate()
        assert b"closed before the program had ended" in output

        async def ended() -> bool:
            code, processes = await debugger.run_pin("ps", "cut")
            return code == 0 and "sleep 4711" not in processes

        # The next agent has ended the program that was left behind.
        await until(ended, NODE_TIMEOUT_S)
