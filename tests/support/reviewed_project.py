"""A repository with commits, reviews and builds, and the project that runs them."""

from __future__ import annotations

import asyncio
import subprocess
from pathlib import Path
from typing import Any

import msgspec
import pytest
from click.testing import CliRunner, Result
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from desk_fixtures import AUTH_HEADERS, DeskWorld
from pincompute.api.names import API_VERSION, ENGINE
from pincompute.cli.publish import publish
from pincompute.cli.review import review
from pincompute.controller.resources import CUSTOM_RESOURCES
from signed_builds import DIGEST, signing_key, trusted_keys

ANN, BEN = "ann@example.com", "ben@example.com"


class ReviewedProject:
    """A repository with two authors, a builder, the project that trusts them, and a desk."""

    def __init__(self, here: DeskWorld, folder: Path) -> None:
        self.world = here
        self.store = folder / "artifacts"
        self.repository = folder / "shop"
        self.repository.mkdir()
        for each in (ANN, BEN, "ci", "eve"):
            text = signing_key(each).private_bytes(Encoding.PEM, PrivateFormat.OpenSSH, NoEncryption())
            (folder / each).write_bytes(text)
        self.keys = folder
        self.git("init", "-q", "-b", "main")
        self.git("config", "user.name", "Somebody")

    async def apply_project(self, since: str = "", **more: Any) -> None:
        """Writes the project. `eve` is neither a member nor trusted. The history up to `since` needs no reviews."""
        landing: dict[str, Any] = {"repository": str(self.repository), "builders": trusted_keys("ci")}
        landing |= {"people": trusted_keys(ANN, BEN), **({"since": since} if since else {})}
        said = {"owner": "team-ads", "quota": {"on-demand": {"pods": 100}}, "landing": landing, **more}
        spec = {name: value for name, value in said.items() if value is not None}
        whole = {"apiVersion": API_VERSION, "kind": "Project", "metadata": {"name": self.world.project}, "spec": spec}
        await self.world.client.apply(whole, CUSTOM_RESOURCES["Project"], manager=ENGINE)

    async def change_review_policy(self, *, review: str, **more: Any) -> None:
        """Changes the review policy, and returns once the desk has seen it."""
        await self.apply_project(review=review, **more)
        path = f"/v1/projects/{self.world.project}"
        async with asyncio.timeout(60):
            while True:
                async with self.world.http.get(path, headers=AUTH_HEADERS) as answer:
                    told = await answer.json()
                if (told["review"], bool(told["builders"])) == (review, more.get("landing", True) is not None):
                    return

    def git(self, *words: str) -> str:
        done = subprocess.run(("git", "-C", str(self.repository), *words), check=True, capture_output=True, text=True)
        return done.stdout.strip()

    def commit(self, text: str, by: str = ANN) -> None:
        (self.repository / "shop.yaml").write_text(text)
        self.git("config", "user.email", by)
        self.git("add", ".")
        self.git("commit", "-q", "-m", "The shop")

    async def publish(self, version: str, by: str = "ci", digest: str = DIGEST) -> str:
        return await _run(
            publish, str(self.repository / "shop.yaml"), "--version", version, "--key", str(self.keys / by),
            "--builder", "ci", "--artifacts", str(self.store), "--project", self.world.project,
            "--image", f"hello:dev={digest}",
        )  # fmt: skip

    async def review(self, by: str, monkeypatch: pytest.MonkeyPatch) -> str:
        monkeypatch.chdir(self.repository)
        self.git("config", "user.email", by)
        return await _run(review, "--key", str(self.keys / by))

    async def deploy(self, version: str) -> tuple[int, Any]:
        path = f"/v1/projects/{self.world.project}/builds/shop/{version}/submissions"
        async with self.world.http.post(path, headers=AUTH_HEADERS) as answer:
            return answer.status, msgspec.json.decode(await answer.read())

    async def deploy_refusals(self, version: str) -> list[str]:
        status, said = await self.deploy(version)
        assert status >= 400, said
        return [each["reason"] for each in said["errors"]]

    async def provenance(self) -> dict[str, Any]:
        path = f"/v1/projects/{self.world.project}/workloads/shop/provenance"
        async with self.world.http.get(path, headers=AUTH_HEADERS) as answer:
            return msgspec.json.decode(await answer.read())  # type: ignore[no-any-return]

    async def broken_links(self) -> list[str]:
        return [each["subject"] for each in (await self.provenance())["links"] if not each["verified"]]


async def _run(command: Any, *words: str) -> str:
    """In a thread, as the command runs an event loop of its own."""
    done: Result = await asyncio.to_thread(CliRunner().invoke, command, words)
    if done.exception:
        raise done.exception
    return done.output
