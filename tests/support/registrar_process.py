"""A registrar as a process of its own, for tests that kill it: `registrar_process.py HOSTS PASSWORD ROOT MEMBERS`."""

from __future__ import annotations

import asyncio
import sys

from pincompute.agents.traffic.ensemble import Ensemble
from pincompute.agents.traffic.members import Member, member_name
from pincompute.agents.traffic.registrar import Registrar
from pincompute.api.serverset import ServersetKey
from pincompute.base import logging
from pincompute.base.clock import SystemClock

KEY = ServersetKey("me", "web")


def numbered_members(count: int) -> dict[str, Member]:
    """Members of distinct pods, each with an address of its own."""
    return {
        f"uid-{each}": Member(
            KEY,
            member_name(f"uid-{each}"),
            b'{"serviceEndpoint":{"host":"10.0.%d.%d","port":80},"status":"ALIVE"}' % divmod(each, 250),
        )
        for each in range(count)
    }


async def main() -> None:
    hosts, password, root, members = sys.argv[1:]
    clock = SystemClock()
    ensemble = Ensemble(hosts, password, clock, session_timeout_s=30.0)
    registrar = Registrar(ensemble, root, clock, on_pass=lambda: None)
    registrar.wanted = numbered_members(int(members))
    ensemble.on_change = registrar.reconcile
    ensemble.start()
    await registrar.run()


if __name__ == "__main__":
    logging.configure(process="registrar")
    asyncio.run(main())
