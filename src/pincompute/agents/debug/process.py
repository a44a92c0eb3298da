"""Process of the agent: serves sessions on the node's address, beside the kubelet."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import NamedTuple

from pincompute.agents.debug.container_program import end_all_programs
from pincompute.agents.debug.containerd import Containerd
from pincompute.agents.debug.grants import GrantVerifier
from pincompute.agents.debug.server import EXEC_PREFIX, DebugServer, server_tls
from pincompute.base.clock import SystemClock
from pincompute.base.debug_grant import load_grant_key
from pincompute.base.http_process import cancel_on_signal, serve_http


class DebugOptions(NamedTuple):
    """Options of the command."""

    listen: str
    certificate: Path
    key: Path
    grants: Path
    """Public key of the desk's grants."""
    containerd: Path
    """Socket of the container runtime."""
    node: str


async def run(options: DebugOptions) -> None:
    """Runs until a signal. Open sessions then end."""
    clock = SystemClock()
    with cancel_on_signal():
        async with Containerd(options.containerd) as containerd:
            await end_all_programs(containerd, EXEC_PREFIX)
            verifier = GrantVerifier(options.node, load_grant_key(options.grants), clock)
            app = DebugServer(containerd, verifier, clock).application()
            tls = server_tls(options.certificate, options.key)
            async with serve_http(options.listen, app, tls=tls, grace=1.0, cancel_disconnected=True):
                await asyncio.Event().wait()
