"""Programs before the desk: by the certificate of their pod, and by a token of their account."""

from __future__ import annotations

import asyncio
import ssl
from datetime import timedelta
from pathlib import Path
from typing import Any

import aiohttp
import msgspec
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from click.testing import CliRunner, Result
from cryptography import x509

from authorities import DOMAIN, NOW, WEB, Made, authority, svid
from control_plane import ControlPlane
from desks import World, world
from pincompute.agents.identity.bundle import IDENTITY, TRUST
from pincompute.api.names import API_VERSION, ENGINE
from pincompute.base.certificates import Authority
from pincompute.base.clock import SystemClock
from pincompute.base.context import read_context
from pincompute.base.problem import Refused
from pincompute.cli.login import login
from pincompute.cli.target import Target, connect
from pincompute.controller.resources import NOUNS
from pincompute.kube.client import Client
from pincompute.kube.resource import SERVICE_ACCOUNTS, Object
from pincompute.submission.people.accounts import AUDIENCE, Accounts
from pincompute.submission.people.certificates import Certificates
from pincompute.submission.people.door import Door, Shown
from pincompute.submission.people.tls import Files, context
from workloads import cluster, new_project

ROOT = authority()
PEOPLE = Certificates(DOMAIN, SystemClock())


async def test_a_certificate_says_which_workload_asks() -> None:
    for _ in range(2):
        who = await PEOPLE.identify(Shown(certificate=svid(ROOT).der))
        assert who
        assert str(who) == "program me/web"
        assert not who.administers
    assert await PEOPLE.identify(Shown(token="something")) is None


class Later(SystemClock):
    def now(self) -> Any:
        return NOW + timedelta(days=400)


@pytest.mark.parametrize(
    ("made", "told"),
    [
        (svid(ROOT, "spiffe://elsewhere.local/me/web"), "trust domain"),
        (svid(ROOT, f"spiffe://{DOMAIN}/web"), "is no workload"),
        (svid(ROOT, f"spiffe://{DOMAIN}/a/b/c"), "is no workload"),
        (svid(ROOT, WEB, WEB), "2 URI names"),
        (svid(ROOT, constraints=x509.BasicConstraints(ca=True, path_length=None)), "of an authority"),
        (ROOT, "it has"),
    ],
)
async def test_one_that_breaks_a_rule_is_nobodys(made: Made, told: str) -> None:
    with pytest.raises(Refused, match=told) as refused:
        await PEOPLE.identify(Shown(certificate=made.der))
    assert refused.value.json()["status"] == 401


async def test_a_connection_outlives_no_certificate() -> None:
    with pytest.raises(Refused, match="has run out"):
        await Certificates(DOMAIN, Later()).identify(Shown(certificate=svid(ROOT).der))


def files(folder: Path, made: Made, *roots: Made) -> Files:
    made.write(folder, *roots)
    return Files(folder / IDENTITY, folder / IDENTITY, folder / TRUST)


async def _told(address: Any, shown: Path | None) -> tuple[int, str]:
    """With this certificate, or with none."""
    own = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    own.check_hostname, own.verify_mode = False, ssl.CERT_NONE
    if shown:
        own.load_cert_chain(shown / IDENTITY)
    async with aiohttp.ClientSession() as session, session.get(address, ssl=own) as answer:
        return answer.status, await answer.text()


async def test_the_handshake_believes_the_roots_and_follows_the_files(tmp_path: Path) -> None:
    door = Door([PEOPLE])

    async def whoever(request: web.Request) -> web.Response:
        try:
            return web.Response(text=str(await door.identify(Shown.by(request))))
        except Refused as refused:
            return web.Response(status=401, text=refused.text())

    app = web.Application()
    app.add_routes([web.get("/", whoever)])
    own, other = authority(), authority()
    server = TestServer(app, scheme="https")
    await server.start_server(ssl=context(files(tmp_path / "desk", svid(ROOT), ROOT)))
    svid(ROOT).write(tmp_path / "program")
    svid(other).write(tmp_path / "stranger")
    svid(own).write(tmp_path / "newer")
    address = server.make_url("/")
    try:
        assert await _told(address, tmp_path / "program") == (200, "program me/web")
        assert (await _told(address, None))[0] == 401
        for who in ("stranger", "newer"):
            with pytest.raises((aiohttp.ClientError, ssl.SSLError, OSError)):
                await _told(address, tmp_path / who)
        # A root was added.
        files(tmp_path / "desk", svid(ROOT), ROOT, own)
        for who in ("program", "newer"):
            assert await _told(address, tmp_path / who) == (200, "program me/web")
    finally:
        await server.close()


async def token(client: Client, project: str, *audiences: str) -> str:
    path = f"/api/v1/namespaces/{project}/serviceaccounts/ci/token"
    body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"audiences": list(audiences)}}
    answer = await client.raw("POST", path, body=msgspec.json.encode(body))
    found: str = msgspec.json.decode(answer)["status"]["token"]
    return found


@pytest.mark.cluster
async def test_a_token_says_which_account_asks_where_it_was_made_for_the_desk(plane: ControlPlane) -> None:
    async with cluster(plane) as client:
        project = await new_project(client)
        account = {"metadata": {"name": "ci", "namespace": project}}
        await client.create(SERVICE_ACCOUNTS, account, manager="tests")
        ours, both = await token(client, project, AUDIENCE), await token(client, project, "https://test", AUDIENCE)
        programs = Accounts(client)
        for each in (ours, both, ours):
            who = await programs.identify(Shown(each))
            assert who
            assert (str(who), who.groups, who.administers) == (f"program {project}/ci", frozenset(), False)
            assert who.until
        # What a program shows to the API server could be shown by whoever got it there.
        assert await programs.identify(Shown(await token(client, project, "https://test"))) is None
        assert await programs.identify(Shown("opaque")) is None
        head, body, _ = ours.split(".")
        for forged in (f"{head}.{body}.", f"{head}.{body}.{both.split('.')[2]}"):
            await refused(programs, forged)
        await client.delete(SERVICE_ACCOUNTS, "ci", project)


async def refused(programs: Accounts, token: str) -> None:
    with pytest.raises(Refused, match="does not know the account") as told:
        await programs.identify(Shown(token))
    assert told.value.json()["status"] == 401


@pytest.mark.cluster
async def test_a_program_shows_its_certificate_and_each_time_the_one_that_is_there(
    plane: ControlPlane, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At a desk that speaks TLS, from `pin login` on."""
    state, pod = tmp_path / "state", tmp_path / "pod"
    monkeypatch.setenv("PIN_STATE", str(state))
    async with world(plane, tmp_path, Door([PEOPLE])) as here:
        address = await _over_tls(here, tmp_path)
        for name in ("ci", "eve"):
            svid(ROOT, f"spiffe://{DOMAIN}/{here.project}/{name}").write(tmp_path / name)
        members: Object = {"viewer": {"programs": ["ci"]}}
        whole = {"apiVersion": API_VERSION, "kind": "Project", "metadata": {"name": here.project}}
        quota: Object = {"on-demand": {}}
        spec = {"owner": "team-ads", "review": "open", "quota": quota, "members": members}
        await here.client.apply({**whole, "spec": spec}, NOUNS["Project"], manager=ENGINE)
        words = (address, "--name", "far", "--trust", str(tmp_path / "desk" / "ca.crt"))
        pod.mkdir()
        shown = pod / IDENTITY
        shown.write_bytes((tmp_path / "ci" / IDENTITY).read_bytes())
        done = await _typed(*words, "--certificate", str(shown))
        assert done.output.startswith(f"program {here.project}/ci  is known at {address}")
        assert read_context(state, "far").token == ""
        target = Target("far", here.project, "", "")
        async with connect(target) as port:
            assert (await port.project(here.project)).owner == "team-ads"
            assert (await port.whoami()).name == f"program {here.project}/ci"
        shown.write_bytes((tmp_path / "eve" / IDENTITY).read_bytes())
        async with connect(target) as port:
            assert (await port.whoami()).name == f"program {here.project}/eve"
            with pytest.raises(Refused, match="there is no project"):
                await port.project(here.project)
        svid(authority()).write(tmp_path / "stranger")
        shown.write_bytes((tmp_path / "stranger" / IDENTITY).read_bytes())
        with pytest.raises(Refused) as refused:
            async with connect(target) as port:
                await port.whoami()
        assert f"it does not believe the certificate in {shown}" in refused.value.text()
        shown.write_text(svid(ROOT).pem)
        with pytest.raises(Refused, match="cannot be used") as refused:
            async with connect(target) as port:
                await port.whoami()
        assert "--key FILE names another one" in refused.value.text()
        await _typed("--name", "far", "--out")
        assert read_context(state, "far").identity == ""
        plain = await _typed(str(here.http.make_url("/")), "--name", "near", "--certificate", str(shown))
        assert isinstance(plain.exception, Refused)
        assert "a certificate is shown by TLS alone" in plain.exception.text()


async def _over_tls(here: World, folder: Path) -> str:
    """The same desk once more, at an address of its own."""
    own = Authority(folder / "desk")
    own.establish()
    own.issue("desk", hosts=("127.0.0.1",))
    roots = folder / "roots.pem"
    roots.write_text(ROOT.pem)
    server = here.http.server
    assert isinstance(server, TestServer)
    assert server.runner
    tls = context(Files(own.certificate("desk"), own.key("desk"), roots))
    await web.TCPSite(server.runner, "127.0.0.1", 0, ssl_context=tls).start()
    return f"https://127.0.0.1:{server.runner.addresses[-1][1]}"


async def _typed(*words: str) -> Result:
    """In a thread, as it has a loop of its own."""
    return await asyncio.to_thread(CliRunner().invoke, login, words)
