"""Configuration bundles at the desk: roles, audit, versions of a deploy, and what a rollback needs."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any, cast

import aiohttp
import msgspec
import pytest

from config_bundles import bundle_files, config_store_client, new_config_store, publish_files
from control_plane import ControlPlane
from pincompute.agents.config.store import ConfigStore
from pincompute.api.config_bundle import ConfigFile, PublishConfig
from pincompute.base.problem import Refused
from pincompute.desk.config_bundles import ConfigBundles
from pincompute.platforms.config_store import ConfigStoreClient
from pincompute.platforms.protocol import Platform
from real_platform import free_port
from runtime_builders import build_service
from tenant_projects import TenantProjects, tenant_projects
from workloads import HELLO

ONE, TWO = {"a": b"1"}, {"a": b"2"}


class PlatformOfWorkloads:
    """A platform of which only the workloads are asked for."""

    def __init__(self) -> None:
        self.workloads: list[Any] = []

    async def cached_projects(self) -> dict[str, None]:
        return {"ads": None, "me": None, "search": None}

    async def list_workloads(self, project: str) -> list[Any]:
        return [each for each in self.workloads if each.metadata.namespace == project]


@pytest.fixture(name="store")
def config_store(tmp_path: Path) -> ConfigStore:
    store = new_config_store(tmp_path / "store")
    store.observe_namespace("me", "uid-of-me")
    return store


@pytest.fixture(name="platform")
def platform_of_workloads() -> PlatformOfWorkloads:
    return PlatformOfWorkloads()


@pytest.fixture
async def bundles(store: ConfigStore, platform: PlatformOfWorkloads) -> AsyncGenerator[ConfigBundles]:
    async with config_store_client(store) as client:
        yield ConfigBundles(client, cast("Platform", platform))


async def test_deploy_gets_the_current_version_and_a_fixed_one(store: ConfigStore, bundles: ConfigBundles) -> None:
    for files in (ONE, TWO):
        publish_files(store, files, "me/limits")
        publish_files(store, files, "search/words")
    store.share("search", "words", ["me"])
    publish_files(store, ONE, "me/flags")
    resolved = await bundles.resolve(build_service(config=["limits", "search/words@1", "flags@live"]))
    pins = {each.bundle: each for each in resolved.spec.config_versions}
    assert {name: each.version for name, each in pins.items()} == {"me/limits": 2, "search/words": 1}
    assert pins["me/limits"].digest == store.read_version("me", "limits", 2).digest
    store.point("me", "limits", 1)
    again = await bundles.resolve(resolved)
    assert {each.bundle: each.version for each in again.spec.config_versions}["me/limits"] == 1


async def test_file_cannot_claim_versions(bundles: ConfigBundles) -> None:
    claimed = [{"bundle": "search/words", "version": 1, "digest": "a" * 64}]
    assert (await bundles.resolve(build_service(configVersions=claimed))).spec.config_versions == []


async def test_every_bundle_that_is_not_there_is_reported_at_once(store: ConfigStore, bundles: ConfigBundles) -> None:
    publish_files(store, ONE, "search/words")
    publish_files(store, ONE, "me/limits")
    with pytest.raises(Refused) as refused:
        await bundles.resolve(build_service(config=["gone", "search/words", "limits@9", "search/no@live"]))
    assert [each.reason.code for each in refused.value.problems] == ["ConfigUnknown"] * 4
    # A bundle that is not shared has the words of one that does not exist.
    words, gone = refused.value.problems[1].what, refused.value.problems[3].what
    assert words.replace("words", "no") == gone


async def test_rollback_to_a_version_that_is_gone_is_refused(store: ConfigStore, bundles: ConfigBundles) -> None:
    publish_files(store, ONE, "me/limits")
    resolved = await bundles.resolve(build_service(config=["limits"]))
    assert await bundles.missing_versions(resolved) == ()
    store.delete("me", "limits")
    publish_files(store, TWO, "me/limits")
    (problem,) = await bundles.missing_versions(resolved)
    assert problem.reason.code == "ConfigVersionGone"


async def test_bundle_in_use_is_kept(store: ConfigStore, bundles: ConfigBundles, platform: PlatformOfWorkloads) -> None:
    publish_files(store, ONE, "me/limits")
    publish_files(store, ONE, "me/flags")
    platform.workloads = [
        await bundles.resolve(build_service("web", config=["limits"])), build_service("app", config=["flags@live"])
    ]  # fmt: skip
    for name, user in (("limits", "me/web"), ("flags", "me/app")):
        with pytest.raises(Refused, match="1 workloads have it") as refused:
            await bundles.delete_bundle("me", name)
        assert refused.value.problems[0].note == user
    for number in range(60):
        content = str(number).encode()
        store.put_content("me", bundle_files({"a": content})[0].digest, content)
        files = [ConfigFile(**each._asdict()) for each in bundle_files({"a": content})]
        await bundles.publish_version("me", "limits", PublishConfig(files=files), "ann")
    assert [each.version for each in store.bundle("me", "limits").versions][:2] == [1, 12]
    platform.workloads = []
    await bundles.delete_bundle("me", "limits")


async def test_platform_without_a_store_says_so(platform: PlatformOfWorkloads) -> None:
    bundles = ConfigBundles(None, cast("Platform", platform))
    assert await bundles.resolve(build_service())
    with pytest.raises(Refused) as refused:
        await bundles.resolve(build_service(config=["limits"]))
    assert refused.value.problems[0].reason.code == "ConfigStoreMissing"


async def test_store_that_does_not_respond_is_no_verdict(platform: PlatformOfWorkloads) -> None:
    async with aiohttp.ClientSession(f"http://127.0.0.1:{free_port()}") as session:
        bundles = ConfigBundles(ConfigStoreClient(session), cast("Platform", platform))
        with pytest.raises(Refused) as refused:
            await bundles.resolve(build_service(config=["limits"]))
    assert refused.value.problems[0].reason.http_status == 503


@pytest.mark.cluster
async def test_roles_and_audit(plane: ControlPlane, tmp_path: Path) -> None:
    store = new_config_store(tmp_path / "store")
    async with (
        config_store_client(store) as client,
        tenant_projects(plane, tmp_path, config_store=client) as here,
    ):
        bundle = f"/projects/{here.ads}/config/limits"
        assert (await publish_as(here, "vera", bundle)).status == 403
        assert (await publish_as(here, "otto", bundle)).status == 404
        first = await publish_as(here, "dan", bundle)
        (digest,) = first.body["missing"]
        contents = f"/projects/{here.ads}/config-contents/{digest}"
        assert (await here.request("vera", "PUT", contents, "1")).status == 403
        assert (await here.request("dan", "PUT", contents, "2")).reason == "ConfigInvalid"
        assert (await here.request("dan", "PUT", contents, "1")).status == 204
        assert (await publish_as(here, "dan", bundle)).body["version"] == 1
        assert (await here.request("vera", "GET", contents)).body == b"1"
        assert (await here.request("vera", "GET", bundle)).body["current"] == 1
        assert (await here.request("otto", "GET", bundle)).status == 404
        shares = {"projects": [here.search]}
        assert (await here.request("dan", "PUT", f"{bundle}/shares", shares)).status == 403
        assert (await here.request("olga", "PUT", f"{bundle}/shares", shares)).status == 200
        assert (await here.request("vera", "PUT", f"{bundle}/pointer", {"version": 1})).status == 403
        assert (await here.request("dan", "PUT", f"{bundle}/pointer", {"version": 7})).reason == "ConfigUnknown"

        unknown = HELLO.replace("port: 8080", "port: 8080, config: [gone]")
        assert (await here.deploy("dan", here.ads, unknown)).reason == "ConfigUnknown"
        # Its version is determined, and this cluster has no runtime.
        known = HELLO.replace("port: 8080", "port: 8080, config: [limits]")
        assert (await here.deploy("dan", here.ads, known)).reason == "ConfigNotDelivered"
        assert (await here.request("vera", "DELETE", bundle)).status == 403
        assert (await here.request("dan", "DELETE", bundle)).status == 204
        audit = await here.request("vera", "GET", f"/projects/{here.ads}/audit")
        notes = [each["note"] for each in audit.body["entries"] if each["act"] == "config"]
        assert notes == ["deleted", f"shared with {here.search}", f"published version 1, {notes[-1][-12:]}"]


async def publish_as(here: TenantProjects, who: str, bundle: str) -> Any:
    files = [each._asdict() for each in bundle_files(ONE)]
    return await here.request(who, "POST", f"{bundle}/versions", msgspec.json.encode({"files": files}))
