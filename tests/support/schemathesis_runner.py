"""Runs Schemathesis against a real desk as one caller: all operations, all checks."""

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
from pincompute.controller.resources import CUSTOM_RESOURCES
from pincompute.desk.authn.authenticator import Authenticator, Credentials
from pincompute.desk.http.auth import ACCESS_REVOKED
from pincompute.desk.http.path_parameters import PATH_PARAMETERS
from pincompute.kube.errors import NotFound
from tenant_projects import TenantProjects, tenant_projects

GLANCE = 0.05
"""How long a stream lasts, in seconds: by themselves streams do not end."""
ROLE_DESCRIPTIONS = {
    "olga": "an owner of the project that is asked for",
    "vera": "who may only look at it",
    "otto": "an owner of another, and nobody in this",
    "ruth": "who administers the platform",
}
ADMINISTERS = "ruth"
NUMBER = "42"
"""Number of an existing runtime."""
ROUND = ("--max-examples", "100")
AGAIN = ("--phases", "fuzzing,stateful")
"""Phases of later rounds: the others are deterministic, and would repeat the first round."""
CONFIG = """\
continue-on-failure = true
request-timeout = 60
[checks.positive_data_acceptance]
# 422 is for rules that a schema cannot express, such as image or template; 426 for websockets, 429 for guessed codes.
expected-statuses = ["2xx", 401, 403, 404, 409, 422, 426, 429]
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
# A document has some thousand fields with a dozen boundary values each: examples are drawn, not enumerated.
[[operations]]
include-operation-id = ["submissions-submit", "sets-submit-set", "plans-plan", "runtimes-change"]
[operations.phases.coverage]
enabled = false
"""


class Showing:
    """Accepts the tokens of four callers; Schemathesis tests, too, that others are rejected."""

    async def authenticate(self, credentials: Credentials) -> Identity | None:
        name = credentials.token.removesuffix("-indeed")
        known = credentials.token == f"{name}-indeed" and name in ROLE_DESCRIPTIONS
        return Identity(name, is_admin=name == ADMINISTERS) if known else None


class FuzzRun(NamedTuple):
    tenants: TenantProjects
    answers: Counter[tuple[str, int]]
    """Number of responses by operation and status."""
    failed: list[str]
    """Responses with status 500 or above."""
    role_name: str
    folder: Path

    async def rounds(self, most: int, ended: Callable[[], None]) -> tuple[int, str]:
        """Runs rounds with different seeds until `most` requests were sent or a check has failed."""
        words: tuple[str, ...] = ()
        for seed in count(1):
            code, said = await self.run("--seed", str(seed), *ROUND, *words)
            ended()
            if code or self.answers.total() >= most:
                return code, said
            words = AGAIN
        raise AssertionError

    async def run(self, *words: str) -> tuple[int, str]:
        """Returns the exit code and the output."""
        config, described = self.folder / "config.toml", self.folder / "openapi.json"
        project = self.tenants.ads
        # A former round may have deleted it.
        assert (await self.tenants.deploy("olga-indeed", project)).status == 201
        config.write_text(CONFIG.format(token=f"{self.role_name}-indeed", project=project, number=NUMBER))
        async with self.tenants.world.http.get("/v1/openapi.json") as answer:
            # The examples use the existing project.
            example = f'"example":"{PATH_PARAMETERS["project"].example}"'.encode()
            described.write_bytes((await answer.read()).replace(example, f'"example":"{project}"'.encode()))
        schemathesis = Path(sys.executable).with_name("schemathesis")
        process = await asyncio.create_subprocess_exec(
            str(schemathesis), "--config-file", str(config),
            # The speed of generation depends on the machine, so its health check is off.
            "run", str(described), "--suppress-health-check", "all", "--generation-database", "none",
            "--url", str(self.tenants.world.http.make_url("/")), "--no-color", *words,
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
async def fuzz_run(plane: ControlPlane, folder: Path, who: str, where: str = "") -> AsyncGenerator[FuzzRun]:
    """A desk for one caller, with its database in the folder or at `where`."""
    answers: Counter[tuple[str, int]] = Counter()
    failed: list[str] = []

    async def counted(request: web.Request, answer: web.StreamResponse) -> None:
        way = request.match_info.route.resource
        answers[f"{request.method} {way.canonical if way else ''}", answer.status] += 1
        if answer.status >= 500 and isinstance(answer, web.Response):
            failed.append(f"{request.method} {request.path_qs}: {answer.status} {answer.text}")

    @web.middleware
    async def glanced(request: web.Request, handler: Handler) -> web.StreamResponse:
        if ACCESS_REVOKED in request:
            request[ACCESS_REVOKED] = lambda: asyncio.sleep(GLANCE)
        return await handler(request)

    def arranged(app: web.Application) -> web.Application:
        app.on_response_prepare.append(counted)
        app.middlewares.append(glanced)
        return app

    async with tenant_projects(plane, folder, door=Authenticator([Showing()]), arrange=arranged, where=where) as here:
        client, runtimes = here.world.client, CUSTOM_RESOURCES["Runtime"]
        spec = {"parts": ["logs-1"]}
        await client.apply({"metadata": {"name": NUMBER}, "spec": spec}, runtimes, manager=ENGINE)
        try:
            yield FuzzRun(here, answers, failed, who, folder)
        finally:
            with suppress(NotFound):
                # Runtimes are global: another run may have deleted it.
                await client.delete(runtimes, NUMBER)


def findings_of(said: str) -> str:
    """The findings in the output, without instructions."""
    return re.sub(r"(?s)^.*?(?==+ (FAILURES|ERRORS|SUMMARY) =+)", "", said)
