"""Credential plugins: their input, their caching and renewal, and their errors, with real programs."""

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
from fake_api_server import fake_api_server, respond_with
from pincompute.base.clock import SystemClock
from pincompute.base.problem import Refused
from pincompute.kube.access import Access
from pincompute.kube.client import Client
from pincompute.kube.credentials import Credentials
from pincompute.kube.errors import ApiError, CredentialsUnavailable
from pincompute.kube.informer import Informer
from pincompute.kube.plugin import EXEC_API_VERSIONS, ExecPlugin
from pincompute.kube.resource import CONFIG_MAPS, NAMESPACES, PODS, Object

Write = Callable[..., ExecPlugin]

UNAUTHORIZED = respond_with(401, '{"kind":"Status","code":401,"reason":"Unauthorized","message":"Unauthorized"}')
V1 = EXEC_API_VERSIONS[0]
POD = respond_with(200, '{"kind":"Pod"}')


@pytest.fixture
def program(tmp_path: Path) -> Write:
    """Writes a program that records its input and prints a token with the number of the run."""

    def write(status: Object | None = None, script: str = "", **more: Any) -> ExecPlugin:
        file = tmp_path / "login"
        answer = {
            "kind": "ExecCredential",
            "apiVersion": EXEC_API_VERSIONS[0],
            "status": status or {"token": "token-RUN"},
        }
        (tmp_path / "answer").write_text(json.dumps(answer))
        default_script = 'echo "$KUBERNETES_EXEC_INFO" >> runs; sed "s/RUN/$(wc -l < runs)/" answer'
        file.write_text(f"#!/bin/sh\ncd {tmp_path}\n{script or default_script}\n")
        file.chmod(0o700)
        return ExecPlugin(str(file), **more)

    return write


def runs(plugin: ExecPlugin) -> list[Object]:
    return [json.loads(line) for line in (Path(plugin.command).parent / "runs").read_text().splitlines()]


async def test_plugin_gets_cluster_info_and_runs_once(program: Write) -> None:
    plugin = program(cluster={"server": "https://10.0.0.1"})
    async with fake_api_server(POD, plugin=plugin) as (client, requests):
        await asyncio.gather(*(client.get(PODS, "web", "me") for _ in range(3)))
    assert [request.headers["Authorization"] for request in requests] == ["Bearer token-1"] * 3
    spec = {"interactive": False, "cluster": {"server": "https://10.0.0.1"}}
    assert runs(plugin) == [{"kind": "ExecCredential", "apiVersion": EXEC_API_VERSIONS[0], "spec": spec}]


async def test_refreshes_rejected_credential_once(program: Write) -> None:
    async with fake_api_server(UNAUTHORIZED, POD, UNAUTHORIZED, plugin=program()) as (client, requests):
        # Also for a write: a request with status 401 was not executed.
        assert await client.create(PODS, {"metadata": {"name": "web"}}, manager="test") == {"kind": "Pod"}
        with pytest.raises(ApiError, match="Unauthorized"):
            await client.get(PODS, "web", "me")
    tokens = [request.headers["Authorization"].removeprefix("Bearer ") for request in requests]
    assert tokens == ["token-1", "token-2", "token-2", "token-3"]


async def test_concurrent_rejections_refresh_once(program: Write) -> None:
    plugin = program()
    async with fake_api_server(UNAUTHORIZED, UNAUTHORIZED, UNAUTHORIZED, POD, plugin=plugin) as (client, _):
        await asyncio.gather(*(client.get(PODS, "web", "me") for _ in range(3)))
    assert len(runs(plugin)) == 2


async def test_runs_plugin_again_when_credential_expires(program: Write) -> None:
    class AdjustableClock(SystemClock):
        passed = timedelta()

        def now(self) -> datetime:
            return datetime(2026, 1, 1, tzinfo=UTC) + self.passed

    clock = AdjustableClock()
    plugin = program({"token": "token-RUN", "expirationTimestamp": "2026-01-01T01:00:00Z"})
    credentials = Credentials(Access("http://10.0.0.1", plugin=plugin), clock)
    seen = []
    for minutes in (0, 59, 60):
        clock.passed = timedelta(minutes=minutes)
        seen.append((await credentials.current()).bearer_token)
    assert seen == ["token-1", "token-1", "token-2"]


@pytest.mark.cluster
async def test_uses_certificate_of_plugin(plane: ControlPlane, program: Write) -> None:
    access = plane.access()
    status = {"clientCertificateData": access.certificate.decode(), "clientKeyData": access.key.decode()}
    async with Client(replace(access, certificate=b"", key=b"", plugin=program(status)), agent="test") as client:
        assert (await client.get(NAMESPACES, "default"))["kind"] == "Namespace"
    with pytest.raises(ApiError, match=r"401|Unauthorized|anonymous"):
        async with Client(replace(access, certificate=b"", key=b""), agent="test") as anonymous:
            await anonymous.get(NAMESPACES, "default")


@pytest.mark.parametrize(
    ("script", "why"),
    [
        ("echo secret; exit 3", "it exited with code 3"),
        ("echo secret", "its output is not an ExecCredential: JSON is malformed: invalid character (byte 0)"),
        ("""echo '{"kind":"ExecCredential","apiVersion":"v9","status":{"token":"secret"}}'""",
         "it printed ExecCredential of v9, must be client.authentication.k8s.io/v1"),
        (f"""echo '{{"kind":"ExecCredential","apiVersion":"{V1}","status":{{}}}}'""",
         "it printed neither a token nor a certificate"),
        (f"""echo '{{"kind":"ExecCredential","apiVersion":"{V1}","status":{{"clientKeyData":"secret"}}}}'""",
         "certificate and key must be given together"),
        (f"""echo '{{"kind":"ExecCredential","apiVersion":"{V1}","status":{{"token":7}}}}'""",
         "its output is not an ExecCredential: Expected `str`, got `int` - at `$.status.token`"),
        ("exec sleep 60", "it did not finish within 0.3 s"),
    ],
)  # fmt: skip
async def test_failure_does_not_reveal_output(program: Write, script: str, why: str) -> None:
    plugin = program(script=script, hint="apt install login")
    with pytest.raises(Refused) as caught:
        await plugin.fetch_credential(timeout_s=0.3 if "sleep" in script else 30)
    assert caught.value.text().splitlines() == [
        f"credential plugin '{plugin.command}' failed: {why}  [CredentialsMissing]",
        "  apt install login",
        f"  next: {plugin.command}",
    ]
    assert "secret" not in repr(caught.value)


async def test_missing_program_and_missing_terminal() -> None:
    with pytest.raises(Refused, match="it cannot be run: no such file or directory"):
        await ExecPlugin("no-such-program").fetch_credential()
    with pytest.raises(Refused, match="it must prompt the user, and there is no terminal"):
        await ExecPlugin("sh", interactive="Always").fetch_credential()


async def test_informer_survives_missing_token_file(tmp_path: Path) -> None:
    """A token file that is missing for a moment must not end a process."""
    token = tmp_path / "token"
    initial_events = '{"type":"BOOKMARK","object":{"metadata":{"annotations":{"k8s.io/initial-events-end":"true"}}}}\n'
    async with fake_api_server(respond_with(200, initial_events), token_file=token) as (client, requests):
        with pytest.raises(CredentialsUnavailable, match=r"the token file .* cannot be read: No such file"):
            await client.get(PODS, "web", "me")
        informer = Informer(client, CONFIG_MAPS, type=dict)
        task = asyncio.create_task(informer.run())
        await asyncio.sleep(0)
        assert not requests
        token.write_text("secret")
        async with asyncio.timeout(60):
            await informer.synced.wait()
        task.cancel()
        await asyncio.wait([task])
