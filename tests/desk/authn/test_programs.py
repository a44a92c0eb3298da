"""Programs authenticate by the certificate of their pod, or by a token of their service account."""

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

from certificate_factory import NOW, TRUST_DOMAIN, WEB_SPIFFE_ID, IssuedCertificate, issue_authority, issue_svid
from control_plane import ControlPlane
from desk_fixtures import DeskWorld, desk_world
from pincompute.agents.identity.bundle import IDENTITY_FILE, TRUST_FILE
from pincompute.api.names import API_VERSION, ENGINE
from pincompute.base.certificate_authority import Authority
from pincompute.base.clock import SystemClock
from pincompute.base.platform_context import read_context
from pincompute.base.problem import Refused
from pincompute.cli.login import login
from pincompute.cli.target import Target, connect
from pincompute.controller.resources import CUSTOM_RESOURCES
from pincompute.desk.authn.authenticator import Authenticator, Credentials
from pincompute.desk.authn.client_certificates import ClientCertificateAuth
from pincompute.desk.authn.service_accounts import AUDIENCE, ServiceAccountAuth
from pincompute.desk.authn.tls import TlsFiles, server_tls_context
from pincompute.kube.client import Client
from pincompute.kube.resource import SERVICE_ACCOUNTS, Object
from pincompute.platforms.kubernetes.token_review import TokenReviewer
from workloads import cluster_client, new_project

ROOT = issue_authority()
PEOPLE = ClientCertificateAuth(TRUST_DOMAIN, SystemClock())


async def test_certificate_identifies_a_workload() -> None:
    for _ in range(2):
        who = await PEOPLE.authenticate(Credentials(certificate=issue_svid(ROOT).der))
        assert who
        assert str(who) == "program me/web"
        assert not who.is_admin
    assert await PEOPLE.authenticate(Credentials(token="something")) is None


class Later(SystemClock):
    def now(self) -> Any:
        return NOW + timedelta(days=400)


@pytest.mark.parametrize(
    ("made", "told"),
    [
        (issue_svid(ROOT, "spiffe://elsewhere.local/me/web"), "trust domain"),
        (issue_svid(ROOT, f"spiffe://{TRUST_DOMAIN}/web"), "is not the ID of a workload"),
        (issue_svid(ROOT, f"spiffe://{TRUST_DOMAIN}/a/b/c"), "is not the ID of a workload"),
        (issue_svid(ROOT, WEB_SPIFFE_ID, WEB_SPIFFE_ID), "2 URI names"),
        (issue_svid(ROOT, constraints=x509.BasicConstraints(ca=True, path_length=None)), "is a CA certificate"),
        (ROOT, "it has"),
    ],
)
async def test_invalid_certificate_is_rejected(made: IssuedCertificate, told: str) -> None:
    with pytest.raises(Refused, match=told) as refused:
        await PEOPLE.authenticate(Credentials(certificate=made.der))
    assert refused.value.json()["status"] == 401


async def test_expired_certificate_is_rejected_on_an_open_connection() -> None:
    with pytest.raises(Refused, match="has expired"):
        await ClientCertificateAuth(TRUST_DOMAIN, Later()).authenticate(Credentials(certificate=issue_svid(ROOT).der))


def files(folder: Path, made: IssuedCertificate, *roots: IssuedCertificate) -> TlsFiles:
    made.write_bundle(folder, *roots)
    return TlsFiles(folder / IDENTITY_FILE, folder / IDENTITY_FILE, folder / TRUST_FILE)


async def _told(address: Any, shown: Path | None) -> tuple[int, str]:
    """A client context with a certificate, or without."""
    own = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    own.check_hostname, own.verify_mode = False, ssl.CERT_NONE
    if shown:
        own.load_cert_chain(shown / IDENTITY_FILE)
    async with aiohttp.ClientSession() as session, session.get(address, ssl=own) as answer:
        return answer.status, await answer.text()


async def test_handshake_verifies_roots_and_reloads_files(tmp_path: Path) -> None:
    authenticator = Authenticator([PEOPLE])

    async def whoever(request: web.Request) -> web.Response:
        try:
            return web.Response(text=str(await authenticator.authenticate(Credentials.from_request(request))))
        except Refused as refused:
            return web.Response(status=401, text=refused.text())

    app = web.Application()
    app.add_routes([web.get("/", whoever)])
    own, other = issue_authority(), issue_authority()
    server = TestServer(app, scheme="https")
    await server.start_server(ssl=server_tls_context(files(tmp_path / "desk", issue_svid(ROOT), ROOT)))
    issue_svid(ROOT).write_bundle(tmp_path / "program")
    issue_svid(other).write_bundle(tmp_path / "untrusted")
    issue_svid(own).write_bundle(tmp_path / "newer")
    address = server.make_url("/")
    try:
        assert await _told(address, tmp_path / "program") == (200, "program me/web")
        assert (await _told(address, None))[0] == 401
        for who in ("untrusted", "newer"):
            with pytest.raises((aiohttp.ClientError, ssl.SSLError, OSError)):
                await _told(address, tmp_path / who)
        # A root was added to the file.
        files(tmp_path / "desk", issue_svid(ROOT), ROOT, own)
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
async def test_service_account_token_with_the_audience_of_the_desk_is_accepted(plane: ControlPlane) -> None:
    async with cluster_client(plane) as client:
        project = await new_project(client)
        account = {"metadata": {"name": "ci", "namespace": project}}
        await client.create(SERVICE_ACCOUNTS, account, manager="tests")
        ours, both = await token(client, project, AUDIENCE), await token(client, project, "https://test", AUDIENCE)
        programs = ServiceAccountAuth(TokenReviewer(client), client.clock)
        for each in (ours, both, ours):
            who = await programs.authenticate(Credentials(each))
            assert who
            assert (str(who), who.groups, who.is_admin) == (f"program {project}/ci", frozenset(), False)
            assert who.valid_until
        # A token for another audience could be replayed by its recipient.
        assert await programs.authenticate(Credentials(await token(client, project, "https://test"))) is None
        assert await programs.authenticate(Credentials("opaque")) is None
        head, body, _ = ours.split(".")
        for forged in (f"{head}.{body}.", f"{head}.{body}.{both.split('.')[2]}"):
            await refused(programs, forged)
        await client.delete(SERVICE_ACCOUNTS, "ci", project)


async def refused(programs: ServiceAccountAuth, token: str) -> None:
    with pytest.raises(Refused, match="rejects this service account token") as told:
        await programs.authenticate(Credentials(token))
    assert told.value.json()["status"] == 401


@pytest.mark.cluster
async def test_program_uses_its_renewed_certificate(
    plane: ControlPlane, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At a desk with TLS, beginning with `pin login`."""
    state, pod = tmp_path / "state", tmp_path / "pod"
    monkeypatch.setenv("PIN_STATE", str(state))
    async with desk_world(plane, tmp_path, Authenticator([PEOPLE])) as here:
        address = await _over_tls(here, tmp_path)
        for name in ("ci", "eve"):
            issue_svid(ROOT, f"spiffe://{TRUST_DOMAIN}/{here.project}/{name}").write_bundle(tmp_path / name)
        members: Object = {"viewer": {"programs": ["ci"]}}
        whole = {"apiVersion": API_VERSION, "kind": "Project", "metadata": {"name": here.project}}
        quota: Object = {"on-demand": {}}
        spec = {"owner": "team-ads", "review": "open", "quota": quota, "members": members}
        await here.client.apply({**whole, "spec": spec}, CUSTOM_RESOURCES["Project"], manager=ENGINE)
        words = (address, "--name", "far", "--trust", str(tmp_path / "desk" / "ca.crt"))
        pod.mkdir()
        shown = pod / IDENTITY_FILE
        shown.write_bytes((tmp_path / "ci" / IDENTITY_FILE).read_bytes())
        done = await _typed(*words, "--certificate", str(shown))
        assert done.output.startswith(f"program {here.project}/ci  accepted by {address}")
        assert read_context(state, "far").token == ""
        target = Target("far", here.project, "", "")
        async with connect(target) as port:
            assert (await port.get_project(here.project)).owner == "team-ads"
            assert (await port.whoami()).name == f"program {here.project}/ci"
        shown.write_bytes((tmp_path / "eve" / IDENTITY_FILE).read_bytes())
        async with connect(target) as port:
            assert (await port.whoami()).name == f"program {here.project}/eve"
            with pytest.raises(Refused, match="no project '"):
                await port.get_project(here.project)
        issue_svid(issue_authority()).write_bundle(tmp_path / "untrusted")
        shown.write_bytes((tmp_path / "untrusted" / IDENTITY_FILE).read_bytes())
        with pytest.raises(Refused) as refused:
            async with connect(target) as port:
                await port.whoami()
        assert f"it rejects the client certificate in {shown}" in refused.value.text()
        shown.write_text(issue_svid(ROOT).pem)
        with pytest.raises(Refused, match="cannot be loaded") as refused:
            async with connect(target) as port:
                await port.whoami()
        assert "or in the file of --key" in refused.value.text()
        await _typed("--name", "far", "--out")
        assert read_context(state, "far").identity == ""
        plain = await _typed(str(here.http.make_url("/")), "--name", "near", "--certificate", str(shown))
        assert isinstance(plain.exception, Refused)
        assert "--certificate needs a desk with TLS" in plain.exception.text()


async def _over_tls(here: DeskWorld, folder: Path) -> str:
    """The same desk at a second address."""
    own = Authority(folder / "desk")
    own.establish()
    own.issue("desk", hosts=("127.0.0.1",))
    roots = folder / "roots.pem"
    roots.write_text(ROOT.pem)
    server = here.http.server
    assert isinstance(server, TestServer)
    assert server.runner
    tls = server_tls_context(TlsFiles(own.certificate("desk"), own.key("desk"), roots))
    await web.TCPSite(server.runner, "127.0.0.1", 0, ssl_context=tls).start()
    return f"https://127.0.0.1:{server.runner.addresses[-1][1]}"


async def _typed(*words: str) -> Result:
    """In a thread, as the command runs an event loop of its own."""
    return await asyncio.to_thread(CliRunner().invoke, login, words)
