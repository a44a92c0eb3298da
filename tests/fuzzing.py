"""Schemathesis before a real desk, as somebody who is signed in: every operation that is described, every check."""

from __future__ import annotations

import asyncio
import re
import sys
from collections import Counter
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager, suppress
from itertools import count
from pathlib import Path
from typing import NamedTuple

from aiohttp import web
from aiohttp.typedefs import Handler

from control_plane import ControlPlane
from pincompute.api.identity import Identity
from pincompute.api.names import ENGINE
from pincompute.controller.resources import NOUNS
from pincompute.kube.errors import NotFound
from pincompute.submission.guards import LAPSE
from pincompute.submission.paths import PLACES
from pincompute.submission.people.door import Door, Shown
from tenants import Tenants, tenants

GLANCE = 0.05
"""Seconds for which somebody looks on here: streams have no end of their own."""
WHO = {
    "olga": "an owner of the project that is asked for",
    "vera": "who may only look at it",
    "otto": "an owner of another, and nobody in this",
    "ruth": "who administers the platform",
}
ADMINISTERS = "ruth"
NUMBER = "42"
"""Of a runtime that is there."""
ROUND = ("--max-examples", "100")
AGAIN = ("--phases", "fuzzing,stateful")
"""What is counted through, and not drawn, is the same each time."""
CONFIG = """\
continue-on-failure = true
request-timeout = 60
[checks.positive_data_acceptance]
# What a schema cannot say, such as that a service has an image or a template, is refused with 422; 426 is for sockets.
expected-statuses = ["2xx", 401, 403, 404, 409, 422, 426]
[auth.openapi.bearer]
bearer = "{token}"
[dictionaries.project]
values = ["{project}"]
[dictionaries.name]
values = ["hello", "other"]
[dictionaries.number]
values = [{number}]
[dictionaries.id]
values = ["submission-1", "submission-2"]
[parameters]
"path.project" = {{dictionary = "project", probability = 0.9}}
"path.name" = {{dictionary = "name", probability = 0.9}}
"path.number" = {{dictionary = "number", probability = 0.9}}
"path.id" = {{dictionary = "id", probability = 0.9}}
# A document has some thousand fields, each with a dozen values at its bounds: they are drawn, and not counted through.
[[operations]]
include-operation-id = ["submissions-submit", "sets-submit-set", "plans-plan", "runtimes-change"]
[operations.phases.coverage]
enabled = false
"""


class Showing:
    """Knows four by their tokens, and nobody else: whether that is looked at is asked, too."""

    async def identify(self, shown: Shown) -> Identity | None:
        name = shown.token.removesuffix("-indeed")
        known = shown.token == f"{name}-indeed" and name in WHO
        return Identity(name, administers=name == ADMINISTERS) if known else None


class Fuzzed(NamedTuple):
    here: Tenants
    answers: Counter[tuple[str, int]]
    """How often which way was answered how."""
    failed: list[str]
    """All that no answer may be, in its own words."""
    who: str
    folder: Path

    async def rounds(self, most: int, ended: Callable[[], None]) -> tuple[int, str]:
        """Until so much was asked, or something is wrong: each draws others, and what went wrong names its seed."""
        words: tuple[str, ...] = ()
        for seed in count(1):
            code, said = await self.run("--seed", str(seed), *ROUND, *words)
            ended()
            if code or self.answers.total() >= most:
                return code, said
            words = AGAIN
        raise AssertionError

    async def run(self, *words: str) -> tuple[int, str]:
        """Its exit code, and what it says."""
        config, described = self.folder / "config.toml", self.folder / "openapi.json"
        project = self.here.ads
        # Whoever may delete it has, by the end of a round.
        assert (await self.here.deploy("olga-indeed", project)).status == 201
        config.write_text(CONFIG.format(token=f"{self.who}-indeed", project=project, number=NUMBER))
        async with self.here.world.http.get("/v1/openapi.json") as answer:
            # The project of its examples is one that is there.
            example = f'"example":"{PLACES["project"].example}"'.encode()
            described.write_bytes((await answer.read()).replace(example, f'"example":"{project}"'.encode()))
        schemathesis = Path(sys.executable).with_name("schemathesis")
        process = await asyncio.create_subprocess_exec(
            str(schemathesis), "--config-file", str(config),
            # How fast requests are thought of is the machine's matter.
            "run", str(described), "--suppress-health-check", "all", "--generation-database", "none",
            "--url", str(self.here.world.http.make_url("/")), "--no-color", *words,
            cwd=self.folder, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT,
        )  # fmt: skip
        try:
            said, _ = await process.communicate()
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
        return process.returncode or 0, said.decode()


@asynccontextmanager
async def fuzzed(plane: ControlPlane, folder: Path, who: str, where: str = "") -> AsyncGenerator[Fuzzed]:
    """A desk of their own, with its record in the folder or `where`."""
    answers: Counter[tuple[str, int]] = Counter()
    failed: list[str] = []

    async def counted(request: web.Request, answer: web.StreamResponse) -> None:
        way = request.match_info.route.resource
        answers[f"{request.method} {way.canonical if way else ''}", answer.status] += 1
        if answer.status >= 500 and isinstance(answer, web.Response):
            failed.append(f"{request.method} {request.path_qs}: {answer.status} {answer.text}")

    @web.middleware
    async def glanced(request: web.Request, handler: Handler) -> web.StreamResponse:
        if LAPSE in request:
            request[LAPSE] = lambda: asyncio.sleep(GLANCE)
        return await handler(request)

    def arranged(app: web.Application) -> web.Application:
        app.on_response_prepare.append(counted)
        app.middlewares.append(glanced)
        return app

    async with tenants(plane, folder, door=Door([Showing()]), arrange=arranged, where=where) as here:
        client, runtimes = here.world.client, NOUNS["Runtime"]
        spec = {"parts": ["logs-1"]}
        await client.apply({"metadata": {"name": NUMBER}, "spec": spec}, runtimes, manager=ENGINE)
        try:
            yield Fuzzed(here, answers, failed, who, folder)
        finally:
            with suppress(NotFound):
                # Each has it, and there is one.
                await client.delete(runtimes, NUMBER)


def told(said: str) -> str:
    """What it found, without how to get it."""
    return re.sub(r"(?s)^.*?(?==+ (FAILURES|ERRORS|SUMMARY) =+)", "", said)
