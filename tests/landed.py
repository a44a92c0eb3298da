"""People at a repository, what they review and publish there, and the project that runs it."""

from __future__ import annotations

import asyncio
import subprocess
from pathlib import Path
from typing import Any

import msgspec
import pytest
from click.testing import CliRunner, Result
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from desks import SIGNED, World
from pincompute.api.names import API_VERSION, ENGINE
from pincompute.cli.publish import publish
from pincompute.cli.review import review
from pincompute.controller.resources import NOUNS
from signing import DIGEST, key, trusted

ANN, BEN = "ann@example.com", "ben@example.com"


class Story:
    """People at a repository, a builder, a project that trusts them, and its desk."""

    def __init__(self, here: World, folder: Path) -> None:
        self.here = here
        self.store = folder / "artifacts"
        self.shop = folder / "shop"
        self.shop.mkdir()
        for each in (ANN, BEN, "ci", "eve"):
            text = key(each).private_bytes(Encoding.PEM, PrivateFormat.OpenSSH, NoEncryption())
            (folder / each).write_bytes(text)
        self.keys = folder
        self.git("init", "-q", "-b", "main")
        self.git("config", "user.name", "Somebody")

    async def trust(self, **more: Any) -> None:
        """The project as it is to be; who has no part in it is `eve`."""
        landing = {"repository": str(self.shop), "builders": trusted("ci"), "people": trusted(ANN, BEN)}
        said = {"owner": "team-ads", "quota": {"on-demand": {"pods": 100}}, "landing": landing, **more}
        spec = {name: value for name, value in said.items() if value is not None}
        whole = {"apiVersion": API_VERSION, "kind": "Project", "metadata": {"name": self.here.project}, "spec": spec}
        await self.here.client.apply(whole, NOUNS["Project"], manager=ENGINE)

    async def turn(self, *, review: str, **more: Any) -> None:
        """The same for a project that was otherwise: return when the desk has heard of it."""
        await self.trust(review=review, **more)
        path = f"/v1/projects/{self.here.project}"
        async with asyncio.timeout(60):
            while True:
                async with self.here.http.get(path, headers=SIGNED) as answer:
                    told = await answer.json()
                if (told["review"], bool(told["builders"])) == (review, more.get("landing", True) is not None):
                    return

    def git(self, *words: str) -> str:
        done = subprocess.run(("git", "-C", str(self.shop), *words), check=True, capture_output=True, text=True)
        return done.stdout.strip()

    def commit(self, text: str, by: str = ANN) -> None:
        (self.shop / "shop.yaml").write_text(text)
        self.git("config", "user.email", by)
        self.git("add", ".")
        self.git("commit", "-q", "-m", "The shop")

    async def publish(self, version: str, by: str = "ci", digest: str = DIGEST) -> str:
        return await _run(
            publish, str(self.shop / "shop.yaml"), "--version", version, "--key", str(self.keys / by),
            "--builder", "ci", "--artifacts", str(self.store), "--project", self.here.project,
            "--image", f"hello:dev={digest}",
        )  # fmt: skip

    async def review(self, by: str, monkeypatch: pytest.MonkeyPatch) -> str:
        monkeypatch.chdir(self.shop)
        self.git("config", "user.email", by)
        return await _run(review, "--key", str(self.keys / by))

    async def deploy(self, version: str) -> tuple[int, Any]:
        path = f"/v1/projects/{self.here.project}/builds/shop/{version}/submissions"
        async with self.here.http.post(path, headers=SIGNED) as answer:
            return answer.status, msgspec.json.decode(await answer.read())

    async def refused(self, version: str) -> list[str]:
        status, said = await self.deploy(version)
        assert status >= 400, said
        return [each["reason"] for each in said["errors"]]

    async def provenance(self) -> dict[str, Any]:
        path = f"/v1/projects/{self.here.project}/workloads/shop/provenance"
        async with self.here.http.get(path, headers=SIGNED) as answer:
            return msgspec.json.decode(await answer.read())  # type: ignore[no-any-return]

    async def broken(self) -> list[str]:
        return [each["what"] for each in (await self.provenance())["links"] if not each["holds"]]


async def _run(command: Any, *words: str) -> str:
    """In a thread, as it has a loop of its own."""
    done: Result = await asyncio.to_thread(CliRunner().invoke, command, words)
    if done.exception:
        raise done.exception
    return done.output
