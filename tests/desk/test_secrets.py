"""Secrets at the desk: who may do what, what it says of deploys, and that it keeps nothing of a value."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import msgspec
import pytest
from aiohttp.test_utils import TestServer

from control_plane import ControlPlane
from pincompute.agents.secrets.server import Waiting, build_app
from pincompute.agents.secrets.store import SecretStore
from pincompute.api.service import PinterestService
from pincompute.base.clock import SystemClock
from pincompute.base.problem import Refused
from pincompute.desk.secrets import NoSecretStore, SecretStoreClient, secret_problems
from secret_stores import DESK_CALLER, add_secret, open_secret_database, project_namespace
from tenant_projects import TenantProjects, tenant_projects

VALUE = b"correct-horse-battery"
NEW = msgspec.json.encode({"value": VALUE})


@asynccontextmanager
async def served(store: SecretStore) -> AsyncGenerator[SecretStoreClient]:
    app = build_app(store, lambda _: DESK_CALLER, SystemClock(), Waiting())
    async with TestServer(app) as server, aiohttp.ClientSession(str(server.make_url("/"))) as session:
        yield SecretStoreClient(session)


@asynccontextmanager
async def tenants_with_store(plane: ControlPlane, folder: Path) -> AsyncGenerator[TenantProjects]:
    async with (
        open_secret_database(folder) as store,
        served(store) as client,
        tenant_projects(plane, folder, secret_store=client) as here,
    ):
        for name in (here.ads, here.search):
            await store.observe_namespace(project_namespace(name))
        yield here


@pytest.mark.cluster
async def test_roles(plane: ControlPlane, tmp_path: Path) -> None:
    async with tenants_with_store(plane, tmp_path) as here:
        secrets = f"/projects/{here.ads}/secrets"
        one = f"{secrets}/db"
        grant = {"grantee": "person:vera"}
        steps = (
            ("vera", "PUT", one, NEW, 403), ("otto", "PUT", one, NEW, 404), ("", "PUT", one, NEW, 401),
            ("dan", "PUT", one, NEW, 201), ("dan", "PUT", one, NEW, 409),
            ("vera", "POST", f"{one}/versions", NEW, 403), ("dan", "POST", f"{one}/versions", NEW, 201),
            ("vera", "PATCH", f"{one}/versions/1", {"state": "inactive"}, 403),
            ("dan", "PATCH", f"{one}/versions/1", {"state": "inactive"}, 200),
            ("dan", "PATCH", f"{one}/versions/2", {"state": "inactive"}, 409),
            ("dan", "PATCH", f"{one}/versions/2", {"state": "shiny"}, 422),
            ("vera", "GET", secrets, b"", 200), ("otto", "GET", secrets, b"", 404),
            ("vera", "GET", one, b"", 200), ("otto", "GET", one, b"", 404), ("vera", "GET", f"{secrets}/no", b"", 404),
            ("vera", "POST", f"{one}/reveals", b"", 403), ("dan", "POST", f"{one}/reveals", b"", 403),
            ("otto", "POST", f"{one}/reveals", b"", 404), ("olga", "POST", f"{one}/reveals", b"", 200),
            ("dan", "POST", f"{one}/grants", grant, 403), ("olga", "POST", f"{one}/grants", {"grantee": "x"}, 422),
            ("olga", "POST", f"{one}/grants", grant, 200), ("vera", "POST", f"{one}/reveals", b"", 200),
            ("dan", "POST", f"{one}/revocations", grant, 403), ("olga", "POST", f"{one}/revocations", grant, 200),
            ("vera", "POST", f"{one}/reveals", b"", 403), ("olga", "POST", f"{one}/revocations", grant, 404),
            ("vera", "GET", f"{one}/log", b"", 200), ("otto", "GET", f"{one}/log", b"", 404),
            ("dan", "DELETE", one, b"", 403), ("olga", "DELETE", one, b"", 204), ("olga", "DELETE", one, b"", 404),
        )  # fmt: skip
        for who, method, path, body, status in steps:
            answer = await here.request(who, method, path, body)
            assert answer.status == status, (who, method, path, answer)
        log = (await here.request("olga", "GET", f"{one}/log")).body["entries"]
        assert [each["act"] for each in log if each["caller"] == "vera"] == ["reveal"]
        # Neither the database of the desk nor its answers have the value.
        assert files_with(tmp_path, VALUE) == []


def files_with(folder: Path, value: bytes) -> list[str]:
    return [each.name for each in folder.iterdir() if each.is_file() and value in each.read_bytes()]


@pytest.mark.cluster
async def test_invalid_values_are_refused_without_being_quoted(plane: ControlPlane, tmp_path: Path) -> None:
    async with tenants_with_store(plane, tmp_path) as here:
        path = f"/projects/{here.ads}/secrets/db"
        for body in (
            b"",
            b"{",
            b"[]",
            b'{"value":"not base64!"}',
            b'{"value":""}',
            b'{"value":"QQ==","more":"%s"}' % VALUE,
        ):
            answer = await here.request("dan", "PUT", path, body)
            assert answer.status == 422
            assert VALUE.decode() not in str(answer.body)
        too_long = msgspec.json.encode({"value": b"x" * 65_537})
        assert (await here.request("dan", "PUT", path, too_long)).status == 422


async def test_deploy_is_told_of_missing_secrets(tmp_path: Path) -> None:
    naming = msgspec.convert(
        {"metadata": {"name": "web", "namespace": "me"}, "spec": {"image": "a", "secrets": ["db", "no", "ads/key@2"]}},
        PinterestService,
    )
    async with open_secret_database(tmp_path, "me", "ads") as store, served(store) as client:
        await add_secret(store, "me", "db")
        await add_secret(store, "ads", "key")
        problems = await secret_problems(client, naming)
    assert [each.reason.code for each in problems] == ["SecretUnknown", "SecretNotGranted"]
    assert {str(each.where) for each in problems} == {"me/web spec.secrets"}


async def test_unreachable_store_cannot_decide() -> None:
    naming = msgspec.convert(
        {"metadata": {"name": "web", "namespace": "me"}, "spec": {"image": "a", "secrets": ["db"]}}, PinterestService
    )
    # Nothing listens at port 1 of this machine.
    async with aiohttp.ClientSession("http://127.0.0.1:1") as session:
        for absent, code in (
            (SecretStoreClient(session), "SecretsUnavailable"),
            (NoSecretStore(), "SecretsNotServed"),
        ):
            with pytest.raises(Refused) as refused:
                await secret_problems(absent, naming)
            assert refused.value.problems[0].reason.code == code
    without = msgspec.structs.replace(naming, spec=msgspec.structs.replace(naming.spec, secrets=[]))
    assert await secret_problems(NoSecretStore(), without) == ()
