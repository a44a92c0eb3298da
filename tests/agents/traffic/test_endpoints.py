"""From a serverset in ZooKeeper to the file of a workload: the registrar's API over mTLS, and the sidecar."""

from __future__ import annotations

import asyncio
import os
import ssl
import stat
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import NamedTuple

import aiohttp
import msgspec
import pytest

from certificate_factory import IssuedCertificate, issue_authority, issue_svid
from pincompute.agents.identity.bundle import client_context
from pincompute.agents.store_connection import IdentityCredentials, StoreUnavailable
from pincompute.agents.traffic import sidecar
from pincompute.agents.traffic.ensemble import Ensemble
from pincompute.agents.traffic.registrar import folder
from pincompute.agents.traffic.server import EndpointsApi, PodAuthenticator, ServiceReaders
from pincompute.agents.traffic.serversets import Serversets
from pincompute.agents.traffic.sidecar import Files, RegistrarClient, run_once
from pincompute.api.serverset import ServersetKey
from pincompute.base.clock import SystemClock
from pincompute.base.http_process import serve_http
from real_platform import free_port
from registrar_process import KEY, numbered_members
from zookeeper_server import ZooKeeperServer, connected, unique_root, until_holds


class RunningApi(NamedTuple):
    """The API of a registrar, and the authority of its callers."""

    address: str
    ensemble: Ensemble
    root: str
    services: dict[tuple[str, str], ServiceReaders]
    serversets: Serversets
    authority: IssuedCertificate
    folder: Path
    requests: Counter[ServersetKey]
    """Waiting requests of each workload."""

    def identity(self, project: str, workload: str) -> Path:
        """Folder with the identity of a pod."""
        made = self.folder / f"{project}.{workload}"
        if not made.exists():
            issue_svid(self.authority, f"spiffe://test/{project}/{workload}").write_bundle(made, self.authority)
        return made

    def client(self, project: str, workload: str, *names: str) -> RegistrarClient:
        credentials = IdentityCredentials(self.identity(project, workload), "registrar")
        return RegistrarClient(self.address, credentials, list(names))

    def open(self, project: str, workload: str, readers: str = "") -> None:
        """Creates or changes a Service with a serverset."""
        annotations = {"pinterest.com/serverset-readers": readers}
        service = {"metadata": {"name": workload, "namespace": project, "annotations": annotations}}
        self.services[project, workload] = msgspec.convert(service, ServiceReaders)
        self.serversets.notify()

    async def register(self, key: ServersetKey, count: int) -> None:
        members = list(numbered_members(count).values())
        path = folder(self.root, key)
        # The first one creates the folders, which would otherwise be tried by all.
        await self.ensemble.put_ephemeral(f"{path}/{members[0].name}", members[0].data)
        await asyncio.gather(*(self.ensemble.put_ephemeral(f"{path}/{each.name}", each.data) for each in members))


@asynccontextmanager
async def running_api(zookeeper: ZooKeeperServer, tmp_path: Path) -> AsyncIterator[RunningApi]:
    async with connected(zookeeper) as ensemble, asyncio.TaskGroup() as group:
        root, address = unique_root(), f"127.0.0.1:{free_port()}"
        serversets = Serversets(ensemble, root, SystemClock(), group)
        ensemble.on_change = serversets.refresh
        authority = issue_authority()
        services: dict[tuple[str, str], ServiceReaders] = {}
        requests: Counter[ServersetKey] = Counter()
        api = RunningApi(f"https://{address}", ensemble, root, services, serversets, authority, tmp_path, requests)
        authenticator = PodAuthenticator(api.identity("pincompute-system", "registrar"))
        endpoints = EndpointsApi(serversets, services, authenticator)
        endpoints.requests = requests
        async with serve_http(address, endpoints.application(), tls=authenticator.context, grace=0.1):
            yield api
        for task in list(group._tasks):  # type: ignore[attr-defined]  # noqa: SLF001  (watches end with the process)
            task.cancel()


@pytest.fixture
async def api(shared_zookeeper: ZooKeeperServer, tmp_path: Path) -> AsyncIterator[RunningApi]:
    async with running_api(shared_zookeeper, tmp_path) as running:
        yield running


async def update(client: RegistrarClient, files: Files, until: Path, text: str | None) -> None:
    """Asks as the sidecar does, until the file has this text, or is gone."""

    def ask() -> bool:
        run_once(client, files, 1)
        return (until.read_text() if until.exists() else None) == text

    await until_holds(lambda: asyncio.to_thread(ask))


async def test_file_follows_the_members(api: RunningApi, tmp_path: Path) -> None:
    files, file = Files(tmp_path / "run"), tmp_path / "run/me/web"
    (tmp_path / "run").mkdir()
    api.open("me", "web")
    client = api.client("me", "caller", "me/web")
    await update(client, files, file, "")
    await api.register(KEY, 2)
    await update(client, files, file, "10.0.0.0:80\n10.0.0.1:80\n")
    inode = file.stat().st_ino
    gone = numbered_members(2)["uid-0"]
    await api.ensemble.delete(f"{folder(api.root, KEY)}/{gone.name}")
    await update(client, files, file, "10.0.0.1:80\n")
    # Replaced as a whole: a reader never sees half of it.
    assert file.stat().st_ino != inode
    assert stat.S_IMODE(file.stat().st_mode) & 0o444
    client.close()


async def test_two_thousand_members_are_read(api: RunningApi, tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    api.open("me", "web")
    await api.register(KEY, 2000)
    hosts = sorted(f"10.0.{each // 250}.{each % 250}" for each in range(2000))
    wanted = "".join(f"{each}:80\n" for each in hosts)
    client = api.client("me", "caller", "me/web")
    await update(client, Files(tmp_path / "run"), tmp_path / "run/me/web", wanted)
    client.close()


async def test_last_known_addresses_stay_while_zookeeper_is_down(zookeeper: ZooKeeperServer, tmp_path: Path) -> None:
    zookeeper.start()
    (tmp_path / "run").mkdir()
    files, file = Files(tmp_path / "run"), tmp_path / "run/me/web"
    async with running_api(zookeeper, tmp_path) as api:
        api.open("me", "web")
        api.open("me", "other")
        await api.register(KEY, 1)
        client = api.client("me", "caller", "me/web", "me/other")
        await update(client, files, file, "10.0.0.0:80\n")
        zookeeper.stop()
        await until_holds(lambda: not api.ensemble.session)
        assert (await asyncio.to_thread(run_once, client, files, 1))[0]
        assert file.read_text() == "10.0.0.0:80\n"
        # A pod that starts meanwhile gets the same from the registrar's memory.
        late = api.client("me", "late", "me/web")
        (tmp_path / "late").mkdir()
        await update(late, Files(tmp_path / "late"), tmp_path / "late/me/web", "10.0.0.0:80\n")
        zookeeper.start()
        await until_holds(lambda: api.ensemble.session)
        await api.register(KEY, 2)
        await update(client, files, file, "10.0.0.0:80\n10.0.0.1:80\n")
        client.close()
        late.close()


def test_unknown_set_leaves_the_file_of_the_last_run(tmp_path: Path) -> None:
    """A registrar that started while ZooKeeper was down knows nothing, and must not empty files."""
    files = Files(tmp_path / "run")
    (tmp_path / "run/me").mkdir(parents=True)
    file = tmp_path / "run/me/web"
    file.write_text("10.0.0.9:80\n")
    unknown = {"me/web": {"text": None, "problem": ""}}
    assert files.apply(unknown) == []
    assert file.read_text() == "10.0.0.9:80\n"


def test_sidecar_is_started_when_all_addresses_are_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    answers = iter(
        [
            {"a/b": {"text": None, "problem": ""}, "a/c": {"text": "", "problem": ""}},
            {"a/b": {"text": "1.1.1.1:1\n", "problem": ""}, "a/c": {"text": None, "problem": "not open"}},
        ]
    )
    started: list[bool] = []

    class ScriptedClient:
        def next_sets(self, _: int) -> Mapping[str, Mapping[str, str | None]]:
            started.append((tmp_path / sidecar.STARTED).exists())
            answer = next(answers, None)
            if answer is None:
                raise KeyboardInterrupt
            return answer

    def scripted(*_: object) -> ScriptedClient:
        return ScriptedClient()

    monkeypatch.setattr(sidecar, "RegistrarClient", scripted)
    monkeypatch.setattr("sys.argv", ["sidecar", str(tmp_path), "https://registrar"])
    monkeypatch.setitem(os.environ, "ENDPOINTS", "a/b a/c")
    with pytest.raises(KeyboardInterrupt):
        sidecar.main()
    assert started == [False, False, True]


async def test_reads_own_project_and_what_is_open_to_it_alone(api: RunningApi, tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    files = Files(tmp_path / "run")
    api.open("me", "web", "ads/feed ops/*")
    await api.register(KEY, 1)
    file = tmp_path / "run/me/web"
    for project, workload in (("me", "other"), ("ads", "feed"), ("ops", "any")):
        client = api.client(project, workload, "me/web")
        await update(client, files, file, "10.0.0.0:80\n")
        client.close()
        file.unlink()
    client = api.client("ads", "other", "me/web")
    assert (await asyncio.to_thread(client.next_sets, 1))["me/web"] == {
        "text": None,
        "problem": "me/web is not open to ads/other",
    }
    # Whether a workload exists in another project is not told either.
    absent = api.client("ads", "other", "me/absent")
    assert "not open" in (await asyncio.to_thread(absent.next_sets, 1))["me/absent"]["problem"]
    client.close()
    absent.close()


async def test_file_is_removed_when_the_target_is_closed(api: RunningApi, tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    files, file = Files(tmp_path / "run"), tmp_path / "run/me/web"
    api.open("me", "web", "ads/feed")
    await api.register(KEY, 1)
    client = api.client("ads", "feed", "me/web")
    await update(client, files, file, "10.0.0.0:80\n")
    api.open("me", "web")
    await update(client, files, file, None)
    client.close()


@asynccontextmanager
async def pod_session(api: RunningApi, project: str, workload: str) -> AsyncIterator[aiohttp.ClientSession]:
    tls: ssl.SSLContext = client_context(api.identity(project, workload))
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=tls)) as session:
        yield session


@pytest.mark.parametrize(
    "query",
    [
        "",
        "set=web",
        "set=me/web/x",
        "set=../../etc",
        "set=me/Web",
        "set=me/web%0a",
        "&".join(f"set=a/b{n}" for n in range(33)),
    ],
)
async def test_invalid_query_is_rejected(api: RunningApi, query: str) -> None:
    async with (
        pod_session(api, "me", "caller") as session,
        session.get(f"{api.address}/v1/endpoints?{query}") as answer,
    ):
        assert (answer.status, "set=PROJECT/WORKLOAD" in await answer.text()) == (400, True)


async def test_request_without_a_certificate_is_refused_by_tls(api: RunningApi) -> None:
    tls = ssl.create_default_context(cafile=api.identity("me", "caller") / "trust.pem")
    tls.check_hostname = False
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=tls)) as session:
        with pytest.raises((aiohttp.ClientError, ssl.SSLError)):
            async with session.get(f"{api.address}/v1/endpoints?set=me/web") as answer:
                await answer.read()


async def test_sidecar_sends_nothing_to_a_server_that_is_not_the_registrar(api: RunningApi) -> None:
    credentials = IdentityCredentials(api.identity("me", "caller"), "log-store")
    client = RegistrarClient(api.address, credentials, ["me/web"])
    with pytest.raises(StoreUnavailable, match="the server is not the log-store"):
        await asyncio.to_thread(client.next_sets, 1)
