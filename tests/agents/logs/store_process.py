"""Log store that knows one pod, as a process that a test can kill: `store_process.py FOLDER PORT CERTIFICATES`."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import msgspec

from pincompute.agents.callers import Caller
from pincompute.agents.listeners import TlsListener
from pincompute.agents.logs.server import build_app
from pincompute.agents.logs.store import LogStore
from pincompute.api.names import DESK, LOG_SHIPPER
from pincompute.base.http_process import serve_http
from pincompute.planning.pods.container_runs import LoggedPod

POD = {
    "metadata": {"name": "hello-0", "namespace": "me", "uid": "uid", "labels": {"pinterest.com/workload": "hello"}},
    "spec": {"containers": [{"name": "hello"}]},
}


async def main() -> None:
    folder, port, certificates = sys.argv[1:]
    store = LogStore(Path(folder))
    store.observe_pod(msgspec.convert(POD, LoggedPod))
    listener = TlsListener(f"127.0.0.1:{port}", Path(certificates) / "store.crt", Path(certificates) / "ca.crt")
    app = build_app(store, lambda _: Caller(LOG_SHIPPER), frozenset({DESK}))
    async with serve_http(listener.listen, app, tls=listener.ssl_context()):
        await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main())
