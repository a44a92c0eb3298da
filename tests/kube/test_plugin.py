"""Credential plugins: real programs, what they are told, when they are asked, and what is said when they fail."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from control_plane import ControlPlane
from pincompute.base.clock import SystemClock
from pincompute.base.problem import Refused
from pincompute.kube.access import Access
from pincompute.kube.client import Client
from pincompute.kube.credentials import Credentials
from pincompute.kube.errors import ApiError, Unproven
from pincompute.kube.informer import Informer
from pincompute.kube.plugin import VERSIONS, Plugin
from pincompute.kube.resource import CONFIG_MAPS, NAMESPACES, PODS, Object
from pretended import pretending, says

Write = Callable[..., Plugin]

UNAUTHORIZED = says(401, '{"kind":"Status","code":401,"reason":"Unauthorized","message":"Unauthorized"}')
POD = says(200, '{"kind":"Pod"}')


@pytest.fixture
def program(tmp_path: Path) -> Write:
    """Writes a program that notes each run and what it is told, and answers with the number of the run."""

    def write(status: Object | None = None, script: str = "", **more: Any) -> Plugin:
        file = tmp_path / "login"
        answer = {"kind": "ExecCredential", "apiVersion": VERSIONS[0], "status": status or {"token": "token-RUN"}}
        (tmp_path / "answer").write_text(json.dumps(answer))
        usual = 'echo "$KUBERNETES_EXEC_INFO" >> runs; sed "s/RUN/$(wc -l < runs)/" answer'
        file.write_text(f"#!/bin/sh\ncd {tmp_path}\n{script or usual}\n")
        file.chmod(0o700)
        return Plugin(str(file), **more)

    return write


def runs(plugin: Plugin) -> list[Object]:
    return [json.loads(line) for line in (Path(plugin.command).parent / "runs").read_text().splitlines()]


async def test_it_is_told_of_its_cluster_and_answers_with_a_token(program: Write) -> None:
    plugin = program(cluster={"server": "https://10.0.0.1"})
    async with pretending(POD, plugin=plugin) as (client, asked):
        await asyncio.gather(*(client.get(PODS, "web", "me") for _ in range(3)))
    assert [request.headers["Authorization"] for request in asked] == ["Bearer token-1"] * 3
    spec = {"interactive": False, "cluster": {"server": "https://10.0.0.1"}}
    assert runs(plugin) == [{"kind": "ExecCredential", "apiVersion": VERSIONS[0], "spec": spec}]


async def test_what_is_not_accepted_is_asked_for_once_more(program: Write) -> None:
    async with pretending(UNAUTHORIZED, POD, UNAUTHORIZED, plugin=program()) as (client, asked):
        # A write too: who is not known has done nothing.
        assert await client.create(PODS, {"metadata": {"name": "web"}}, manager="test") == {"kind": "Pod"}
        with pytest.raises(ApiError, match="Unauthorized"):
            await client.get(PODS, "web", "me")
    tokens = [request.headers["Authorization"].removeprefix("Bearer ") for request in asked]
    assert tokens == ["token-1", "token-2", "token-2", "token-3"]


async def test_many_who_were_not_accepted_ask_once(program: Write) -> None:
    plugin = program()
    async with pretending(UNAUTHORIZED, UNAUTHORIZED, UNAUTHORIZED, POD, plugin=plugin) as (client, _):
        await asyncio.gather(*(client.get(PODS, "web", "me") for _ in range(3)))
    assert len(runs(plugin)) == 2


async def test_it_is_asked_again_when_what_it_gave_expires(program: Write) -> None:
    class Later(SystemClock):
        passed = timedelta()

        def now(self) -> datetime:
            return datetime(2026, 1, 1, tzinfo=UTC) + self.passed

    clock = Later()
    plugin = program({"token": "token-RUN", "expirationTimestamp": "2026-01-01T01:00:00Z"})
    credentials = Credentials(Access("http://10.0.0.1", plugin=plugin), clock)
    seen = []
    for minutes in (0, 59, 60):
        clock.passed = timedelta(minutes=minutes)
        seen.append((await credentials.show()).bearer)
    assert seen == ["token-1", "token-1", "token-2"]


@pytest.mark.cluster
async def test_a_certificate_that_it_gives_is_shown(plane: ControlPlane, program: Write) -> None:
    access = plane.access()
    status = {"clientCertificateData": access.certificate.decode(), "clientKeyData": access.key.decode()}
    async with Client(replace(access, certificate=b"", key=b"", plugin=program(status)), agent="test") as client:
        assert (await client.get(NAMESPACES, "default"))["kind"] == "Namespace"
    with pytest.raises(ApiError, match=r"401|Unauthorized|anonymous"):
        async with Client(replace(access, certificate=b"", key=b""), agent="test") as nobody:
            await nobody.get(NAMESPACES, "default")


@pytest.mark.parametrize(
    ("script", "why"),
    [
        ("echo secret; exit 3", "it ended with 3"),
        ("echo secret", "it did not answer with an ExecCredential: JSON is malformed: invalid character (byte 0)"),
        ("""echo '{"kind":"ExecCredential","apiVersion":"v9","status":{"token":"secret"}}'""",
         "it answered with ExecCredential of v9, not of client.authentication.k8s.io/v1"),
        (f"""echo '{{"kind":"ExecCredential","apiVersion":"{VERSIONS[0]}","status":{{}}}}'""",
         "it gave neither a token nor a certificate"),
        (f"""echo '{{"kind":"ExecCredential","apiVersion":"{VERSIONS[0]}","status":{{"clientKeyData":"secret"}}}}'""",
         "it gave one of certificate and key without the other"),
        (f"""echo '{{"kind":"ExecCredential","apiVersion":"{VERSIONS[0]}","status":{{"token":7}}}}'""",
         "it did not answer with an ExecCredential: Expected `str`, got `int` - at `$.status.token`"),
        ("exec sleep 60", "it was not done after 0.3 s"),
    ],
)  # fmt: skip
async def test_what_fails_is_told_without_what_it_said(program: Write, script: str, why: str) -> None:
    plugin = program(script=script, hint="apt install login")
    with pytest.raises(Refused) as caught:
        await plugin.ask(patience=0.3 if "sleep" in script else 30)
    assert caught.value.text().splitlines() == [
        f"the credential plugin '{plugin.command}' gave nothing to show: {why}  [CredentialsMissing]",
        "  apt install login",
        f"  next: {plugin.command}",
    ]
    assert "secret" not in repr(caught.value)


async def test_one_that_is_not_there_and_one_that_needs_a_person() -> None:
    with pytest.raises(Refused, match="it cannot be run: no such file or directory"):
        await Plugin("no-such-program").ask()
    with pytest.raises(Refused, match="it wants to speak with a person, and there is no terminal"):
        await Plugin("sh", interactive="Always").ask()


async def test_who_watches_goes_on_when_there_is_something_to_show_again(tmp_path: Path) -> None:
    """A token's file that is away for a moment ends no process."""
    token = tmp_path / "token"
    listed = '{"type":"BOOKMARK","object":{"metadata":{"annotations":{"k8s.io/initial-events-end":"true"}}}}\n'
    async with pretending(says(200, listed), token_file=token) as (client, asked):
        with pytest.raises(Unproven, match=r"the token file .* cannot be read: No such file"):
            await client.get(PODS, "web", "me")
        informer = Informer(client, CONFIG_MAPS, type=dict)
        task = asyncio.create_task(informer.run())
        await asyncio.sleep(0)
        assert not asked
        token.write_text("secret")
        async with asyncio.timeout(60):
            await informer.synced.wait()
        task.cancel()
        await asyncio.wait([task])
