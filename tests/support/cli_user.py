"""A user of the CLI on the platform's machine: runs `pin` in a folder and sends HTTP requests to workloads."""

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
from real_platform import WAIT_TIMEOUT_S, suppress_failed_watch


class CliUser(NamedTuple):
    """Runs `pin` in a folder, and sends HTTP requests to workloads."""

    platform: Platform
    folder: Path

    @property
    def variables(self) -> dict[str, str]:
        return {**os.environ, "PIN_STATE": str(self.platform.home.root.parent), "PIN_NAME": self.platform.name}

    async def pin(self, *words: str, code: int = 0) -> str:
        found, said = await self.run_pin(*words)
        assert found == code, said
        return said

    async def run_pin(self, *words: str) -> tuple[int, str]:
        """Exit code and output."""
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
        assert process.returncode is not None
        return process.returncode, said.decode()

    @asynccontextmanager
    async def pin_lines(self, *words: str) -> AsyncIterator[AsyncIterator[str]]:
        """Yields the output of `pin` line by line, while it runs."""
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

    async def http_get(self, name: str, inside: str = "") -> tuple[int, str]:
        """Requests a workload of project `me` by its name, or another by its host; from outside or inside."""
        address = f"http://{inside or '127.0.0.1'}:{80 if inside else self.platform.ports['http']}/"
        headers = {"Host": name if "." in name else f"{name}.me.localhost"}
        async with aiohttp.ClientSession() as session, session.get(address, headers=headers) as answer:
            return answer.status, await answer.text()

    async def wait_answered(self, name: str, inside: str = "") -> None:
        """Returns after the first successful response: proxies learn of a replica some moments after it is ready."""
        heard = ""
        try:
            async with asyncio.timeout(WAIT_TIMEOUT_S):
                while True:
                    with suppress(aiohttp.ClientError):
                        status, heard = await self.http_get(name, inside)
                        if status == 200:
                            return
        except TimeoutError:
            raise AssertionError(f"nobody answers for {name}: {heard!r}") from None

    async def wait_body(self, name: str, wanted: str, inside: str = "") -> None:
        """Returns once the body is as wanted: a terminating replica responds until all proxies know that it ends."""
        heard = ""
        try:
            async with asyncio.timeout(WAIT_TIMEOUT_S):
                while heard != wanted:
                    status, heard = await self.http_get(name, inside)
                    assert status == 200, heard
        except TimeoutError:
            raise AssertionError(f"{name} still answers {heard!r}") from None


@asynccontextmanager
async def continuous_requests(person: CliUser, name: str, inside: str = "") -> AsyncIterator[list[str]]:
    """Sends requests without pause, from this machine and inside the cluster; yields the failures."""
    failed: list[str] = []
    for each in {"", inside}:
        await person.wait_answered(name, each)

    async def request_continuously(address: str) -> None:
        while True:
            try:
                status, body = await person.http_get(name, address)
            except aiohttp.ClientError as error:
                failed.append(f"{address} {error!r}")
            else:
                failed.extend([f"{status} {body}"] if status != 200 else ())

    askers = [asyncio.create_task(request_continuously(address)) for address in ("", inside)]
    try:
        yield failed
    finally:
        for each in askers:
            each.cancel()
        await asyncio.wait(askers)


async def wait_all_gone(
    client: Client, resource: Resource, namespace: str, *, labels: str = "", fields: str = ""
) -> None:
    """Returns once no matching object is left."""
    left: set[str] = set()
    try:
        async with asyncio.timeout(3 * WAIT_TIMEOUT_S):
            while True:  # the server ends a watch when it likes
                listing = await client.list(resource, namespace, labels=labels, fields=fields)
                left = {each["metadata"]["name"] for each in listing.items}
                if not left:
                    return
                changes = client.watch(
                    resource, namespace, resource_version=listing.resource_version, labels=labels, fields=fields
                )
                with suppress_failed_watch():
                    async with aclosing(changes) as events:
                        async for event in events:
                            name = event.object["metadata"]["name"]
                            left = left - {name} if event.type == DELETED else left | {name}
                            if not left:
                                return
    except TimeoutError:
        raise AssertionError(f"{resource.plural} are still there: {', '.join(sorted(left))}") from None
