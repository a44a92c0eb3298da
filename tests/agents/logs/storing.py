"""A store of logs that knows one pod, as a program that a test can kill: `storing.py FOLDER PORT CERTIFICATES`."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import msgspec

from pincompute.agents.logs.callers import Caller
from pincompute.agents.logs.process import Door
from pincompute.agents.logs.server import application
from pincompute.agents.logs.store import Store
from pincompute.agents.process import answering
from pincompute.api.names import DESK, LOG_SHIPPER
from pincompute.planning.pods.lives import Pod

POD = {
    "metadata": {"name": "hello-0", "namespace": "me", "uid": "uid", "labels": {"pinterest.com/workload": "hello"}},
    "spec": {"containers": [{"name": "hello"}]},
}


async def main() -> None:
    folder, port, certificates = sys.argv[1:]
    store = Store(Path(folder))
    store.see(msgspec.convert(POD, Pod))
    door = Door(f"127.0.0.1:{port}", Path(certificates) / "store.crt", Path(certificates) / "ca.crt")
    page = application(store, lambda _: Caller(LOG_SHIPPER), frozenset({DESK}))
    async with answering(door.listen, page, tls=door.context()):
        await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main())
