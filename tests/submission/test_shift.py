"""The shift: one desk at a time, and another as soon as that one is dead or not heard of."""

from __future__ import annotations

import asyncio
import sys
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from pathlib import Path

import pytest

from pincompute.submission.database import open_database
from pincompute.submission.shift import Shift, of_a_server, serve
from postgres import new_database

HOLDS = """
import asyncio, sys
from pincompute.submission.database import open_database

async def hold():
    database = await open_database(sys.argv[1])
    async with database.shift("main"):
        print("mine", flush=True)
        await asyncio.Event().wait()

asyncio.run(hold())
"""


async def test_it_is_free_when_its_holder_is_killed(where: str) -> None:
    other = await asyncio.create_subprocess_exec(sys.executable, "-c", HOLDS, where, stdout=asyncio.subprocess.PIPE)
    assert other.stdout
    assert await other.stdout.readline() == b"mine\n"
    database = await open_database(where)
    async with AsyncExitStack() as stack:
        waits = asyncio.create_task(stack.enter_async_context(database.shift("main")))
        # That of another platform is another's.
        if database.shared:
            async with database.shift("east"):
                pass
        assert not waits.done()
        other.kill()
        async with asyncio.timeout(60):
            assert (await waits).certain()
    await other.wait()
    await database.close()


@pytest.fixture
def address(server: Path) -> str:
    return new_database(server)


async def test_who_is_not_heard_of_loses_it_and_is_not_certain_before(address: str) -> None:
    async with AsyncExitStack() as stack:
        # It was to be heard every minute.
        silent = await stack.enter_async_context(of_a_server(address, "main", limit=1.0, every=60.0))
        async with asyncio.timeout(60), of_a_server(address, "main") as other:
            assert other.certain()
            assert not silent.certain()
            await silent.ended.wait()


async def test_who_is_heard_keeps_it(address: str) -> None:
    async with of_a_server(address, "main", limit=2.0, every=0.2) as held:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(3.0), of_a_server(address, "main"):
                pass
        assert held.certain()


async def test_a_shift_that_ends_ends_its_duties_and_another_follows() -> None:
    shifts: list[Shift] = []
    ended: list[Shift] = []
    begun = asyncio.Queue[Shift]()

    class Next(AbstractAsyncContextManager[Shift]):
        async def __aenter__(self) -> Shift:
            shifts.append(Shift())
            return shifts[-1]

        async def __aexit__(self, *_: object) -> None:
            return None

    async def duty(shift: Shift) -> None:
        begun.put_nowait(shift)
        try:
            await asyncio.Event().wait()
        finally:
            ended.append(shift)

    serving = asyncio.create_task(serve(Next, (duty,)))
    first = await begun.get()
    first.ended.set()
    second = await begun.get()
    assert (first is second, ended, first.certain()) == (False, [first], False)
    serving.cancel()
    await asyncio.gather(serving, return_exceptions=True)
    assert ended == shifts
