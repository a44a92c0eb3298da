"""Someone who types `pin` in a folder, and looks at addresses."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager, suppress
from pathlib import Path
from typing import NamedTuple

import aiohttp

from pincompute.engine.platform import Platform
from pincompute.kube.client import Client
from pincompute.kube.resource import Resource
from pincompute.kube.watch import DELETED
from real_platform import PATIENCE


class Person(NamedTuple):
    """Types `pin` in a folder, and looks at addresses."""

    platform: Platform
    folder: Path

    @property
    def variables(self) -> dict[str, str]:
        return {**os.environ, "PIN_STATE": str(self.platform.home.root.parent), "PIN_NAME": self.platform.name}

    async def pin(self, *words: str, code: int = 0) -> str:
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "pincompute",
            *words,
            cwd=self.folder,
            env=self.variables,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        said, _ = await process.communicate()
        assert process.returncode == code, said.decode()
        return said.decode()

    @asynccontextmanager
    async def hearing(self, *words: str) -> AsyncIterator[AsyncIterator[str]]:
        """What `pin` says, line by line, while it says it."""
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "pincompute", *words,
            cwd=self.folder, env=self.variables,
            stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT,
        )  # fmt: skip
        assert process.stdout is not None
        try:
            yield (line.decode().rstrip("\n") async for line in process.stdout)
        finally:
            if process.returncode is None:
                process.kill()
            await process.wait()

    async def ask(self, name: str, inside: str = "") -> tuple[int, str]:
        """As a browser would: every name under localhost is this machine; or inside the cluster, at its address."""
        address = f"http://{inside or '127.0.0.1'}:{80 if inside else self.platform.ports['http']}/"
        headers = {"Host": f"{name}.me.localhost"}
        async with aiohttp.ClientSession() as session, session.get(address, headers=headers) as answer:
            return answer.status, await answer.text()

    async def is_answered(self, name: str, inside: str = "") -> None:
        """Return when it is, for the first time: those on the way there hear of a copy a moment after it is ready."""
        heard = ""
        try:
            async with asyncio.timeout(PATIENCE):
                while True:
                    with suppress(aiohttp.ClientError):
                        status, heard = await self.ask(name, inside)
                        if status == 200:
                            return
        except TimeoutError:
            raise AssertionError(f"nobody answers for {name}: {heard!r}") from None

    async def hears(self, name: str, wanted: str, inside: str = "") -> None:
        """Return when that is answered: a copy that ends answers until the last who knows it has heard of it."""
        heard = ""
        try:
            async with asyncio.timeout(PATIENCE):
                while heard != wanted:
                    status, heard = await self.ask(name, inside)
                    assert status == 200, heard
        except TimeoutError:
            raise AssertionError(f"{name} still answers {heard!r}") from None


@asynccontextmanager
async def asking(person: Person, name: str, inside: str = "") -> AsyncIterator[list[str]]:
    """Two who ask all the time once they were answered, one of them inside where it says at which address; what was
    not answered well."""
    failed: list[str] = []
    for each in {"", inside}:
        await person.is_answered(name, each)

    async def ask(address: str) -> None:
        while True:
            try:
                status, body = await person.ask(name, address)
            except aiohttp.ClientError as error:
                failed.append(f"{address} {error!r}")
            else:
                failed.extend([f"{status} {body}"] if status != 200 else ())

    askers = [asyncio.create_task(ask(address)) for address in ("", inside)]
    try:
        yield failed
    finally:
        for each in askers:
            each.cancel()
        await asyncio.wait(askers)


async def all_gone(client: Client, resource: Resource, namespace: str, *, labels: str = "", fields: str = "") -> None:
    """Return when nothing that matches is left."""
    left: set[str] = set()
    try:
        async with asyncio.timeout(3 * PATIENCE):
            while True:  # the server ends a watch when it likes
                listing = await client.list(resource, namespace, labels=labels, fields=fields)
                left = {each["metadata"]["name"] for each in listing.items}
                if not left:
                    return
                changes = client.watch(resource, namespace, revision=listing.revision, labels=labels, fields=fields)
                async with aclosing(changes) as events:
                    async for event in events:
                        name = event.object["metadata"]["name"]
                        left = left - {name} if event.type == DELETED else left | {name}
                        if not left:
                            return
    except TimeoutError:
        raise AssertionError(f"{resource.plural} are still there: {', '.join(sorted(left))}") from None
