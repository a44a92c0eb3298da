"""A deployment from commit to running replica: with OpenID provider, PostgreSQL, git, registry and cluster."""

from __future__ import annotations

import asyncio
import os
import re
import sys
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast

import aiohttp
import pytest

from backends import free_port
from busybox import write_image
from cli_user import CliUser, wait_all_gone
from desk_fixtures import DeskWorld
from openid_server import openid_server, sign_in_with_browser
from pincompute.api.names import DESK
from pincompute.controller.resources import CUSTOM_RESOURCES
from pincompute.engine.kubeconfigs import write_kubeconfig
from pincompute.engine.platform import Platform
from pincompute.kube.client import Client
from pincompute.kube.resource import NAMESPACES, PODS, Object
from postgres_server import new_database, postgres_server
from real_platform import wait_until
from reviewed_project import BEN, ReviewedProject
from transcripts import ROOT

pytestmark = pytest.mark.cluster

PROJECT = "whole-way"
DEPLOYER = "ads.dan@example.com"
SHOP = """\
apiVersion: pinterest.com/v1
kind: PinterestService
metadata: {name: shop}
spec: {image: shop:1, port: 8080}
"""


class RemoteUser(CliUser):
    """A user with only the address of a desk."""

    @property
    def variables(self) -> dict[str, str]:
        return {**os.environ, "PIN_STATE": str(self.folder / "state"), "PIN_NAME": "afar"}

    async def sign_in(self, desk: str, name: str) -> None:
        async with self.pin_lines("login", desk) as lines:
            async for line in lines:
                if shown := re.search(r"open (\S+)", line):
                    await sign_in_with_browser(shown[1], name)
                elif "signed in to" in line:
                    return
        raise AssertionError("sign-in did not finish")


@pytest.fixture
def record() -> Iterator[str]:
    with postgres_server() as server:
        yield new_database(server)


@asynccontextmanager
async def _desk(platform: Platform, folder: Path, record: str) -> AsyncGenerator[str]:
    """A second desk for the same cluster, with its own database and OpenID provider."""
    address = f"127.0.0.1:{free_port()}"
    (folder / "token").write_text("unused")
    write_kubeconfig(platform, DESK, folder / "kubeconfig")
    async with openid_server() as issuer:
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "pincompute", "desk", "--kubeconfig", "kubeconfig",
            "--listen", address, "--token-file", "token", "--issuer", issuer, "--database", record,
            "--folder", ".", "--artifacts", str(platform.home.data / "artifacts"),
            cwd=folder,
        )  # fmt: skip
        try:
            async with aiohttp.ClientSession() as http, asyncio.timeout(60):
                while process.returncode is None:
                    try:
                        await (await http.get(f"http://{address}/healthz")).read()
                        break
                    except aiohttp.ClientConnectionError:
                        await asyncio.sleep(0.05)
            yield f"http://{address}"
        finally:
            process.terminate()
            await process.wait()


async def test_commit_is_deployed_and_answers(
    real_platform: Platform, client: Client, record: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    builder, dan = CliUser(real_platform, tmp_path), RemoteUser(real_platform, tmp_path)
    story = ReviewedProject(DeskWorld(cast("Any", None), cast("Any", None), client, PROJECT), tmp_path)
    await builder.pin("image", "load", str(ROOT / "examples" / "hello"), "--as", "shop:1")
    await story.apply_project(members={"deployer": {"people": [DEPLOYER]}})
    await wait_until(client, CUSTOM_RESOURCES["Project"], "", _ready, PROJECT)
    story.commit(SHOP)
    await story.review(BEN, monkeypatch)
    publish = (
        "publish", str(story.repository / "shop.yaml"), "--key", str(tmp_path / "ci"), "--builder", "ci",
        "--project", PROJECT, "--version", "1.0",
    )  # fmt: skip
    await builder.pin(*publish)
    async with _desk(real_platform, tmp_path, record) as desk:
        await dan.sign_in(desk, DEPLOYER)
        assert "shop@1" in await dan.pin("deploy", "shop", "--version", "1.0", "--project", PROJECT)
        links = _links(await dan.pin("provenance", "shop", "--project", PROJECT))
        assert links == dict.fromkeys(
            ("commit", "reviewed", "file", "built", "published", "submission", "revision", "replicas"), "ok"
        )
        (pod,) = (await client.list(PODS, PROJECT)).items
        digest = pod["spec"]["containers"][0]["image"].partition("@")[2]
        assert digest.startswith("sha256:")
        # Another image is pushed under the same tag.
        write_image(tmp_path / "other.tar")
        await builder.pin("image", "load", "other.tar", "--as", "shop:1")
        assert "the published version 1.0 cannot change" in await builder.pin(*publish, code=1)
        await dan.pin("deploy", "shop", "--version", "1.0", "--project", PROJECT)
        assert _links(await dan.pin("provenance", "shop", "--project", PROJECT)) == links
        (same,) = (await client.list(PODS, PROJECT)).items
        assert (same["metadata"]["uid"], same["spec"]["containers"][0]["image"].partition("@")[2]) == (
            pod["metadata"]["uid"],
            digest,
        )
        await dan.pin("delete", "shop", "--project", PROJECT)
    await client.delete(CUSTOM_RESOURCES["Project"], PROJECT)
    async with asyncio.timeout(60):
        await wait_all_gone(client, NAMESPACES, "", fields=f"metadata.name={PROJECT}")


def _ready(seen: Object) -> bool:
    return any(
        each["type"] == "Ready" and each["status"] == "True" for each in seen.get("status", {}).get("conditions", ())
    )


def _links(output: str) -> dict[str, str]:
    return {link: word for word, link in re.findall(r"^  (ok|NO)  (\w+)", output, re.MULTILINE)}
