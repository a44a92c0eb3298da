"""A shell outlives the API server.

This test is in a file of its own, which runs after those that read the audit log of the same platform: for a moment
after its start, an API server knows no rights and refuses requests of the platform's own parts.
"""

from __future__ import annotations

import os
import signal

import pytest

from cli_user import CliUser
from debug_sessions import NODE_TIMEOUT_S, debugger as debugger, deployed, echo, interactive, running_part
from pincompute.engine.platform import Platform
from polling import until

pytestmark = pytest.mark.cluster


async def test_killed_api_server_interrupts_no_shell(real_platform: Platform, debugger: CliUser) -> None:
    async with deployed(debugger, "lasting"), interactive(debugger, "shell", "lasting", "--", "cat") as shell:
        assert await echo(shell, "before") == "before"
        api_server = running_part(real_platform, "kube-apiserver")
        os.kill(api_server, signal.SIGKILL)
        assert await echo(shell, "while it is down") == "while it is down"

        async def restarted() -> bool:
            return running_part(real_platform, "kube-apiserver") != api_server

        await until(restarted, NODE_TIMEOUT_S)
        assert await echo(shell, "afterwards") == "afterwards"
        assert shell.stdin is not None
        shell.stdin.close()
        assert await shell.wait() == 0

        async def recovered() -> bool:
            # At first a new API server knows no rights at all.
            code, _ = await debugger.run_pin("wait", "lasting", "--timeout", str(NODE_TIMEOUT_S))
            return code == 0

        await until(recovered, NODE_TIMEOUT_S)
