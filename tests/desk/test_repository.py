"""Mirrors of real git repositories: landed commits, authors, files and reviews."""

from __future__ import annotations

import asyncio
import hashlib
import os
import subprocess
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pytest
from aiohttp import encode_basic_auth, web
from aiohttp.test_utils import TestServer

from pincompute.api.landing import Landing
from pincompute.base.problem import Refused
from pincompute.desk import repository
from pincompute.desk.git_process import GitCommand, GitResult
from pincompute.desk.outbound_credentials import OutboundCredentials
from pincompute.desk.repository import RepositoryMirrors
from signed_builds import signed_review, trusted_keys

ANN, BEN = "ann@example.com", "ben@example.com"


class Checkout(NamedTuple):
    top: Path

    def git(self, *words: str, by: str = ANN, said: str = "") -> str:
        who = ("-c", f"user.email={by}", "-c", "user.name=Somebody", "-c", "init.defaultBranch=main")
        command = ("git", "-C", str(self.top), *who, *words)
        return subprocess.run(command, check=True, capture_output=True, text=True, input=said).stdout.strip()

    def commit(self, text: str, by: str = ANN, message: str = "Change it") -> str:
        (self.top / "shop.yaml").write_text(text)
        self.git("add", ".")
        self.git("commit", "-m", message, by=by)
        return self.git("rev-parse", "HEAD")

    def note(self, commit: str, *lines: str) -> None:
        for line in lines:
            self.git("notes", "--ref=refs/notes/reviews", "append", "-F", "-", commit, said=line)

    @property
    def landing(self) -> Landing:
        return Landing(repository=str(self.top), builders=trusted_keys("ci"))


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    (tmp_path / "shop").mkdir()
    found = Checkout(tmp_path / "shop")
    found.git("init", "-q")
    return found


@asynccontextmanager
async def private(checkout: Checkout) -> AsyncGenerator[tuple[Landing, list[str]]]:
    """Serves a repository over HTTP with basic authentication, and records the credentials."""
    checkout.git("update-server-info")
    shown: list[str] = []

    async def serve_git(request: web.Request) -> web.StreamResponse:
        shown.append(request.headers.get("Authorization", ""))
        if shown[-1] != encode_basic_auth("desk", "open"):
            raise web.HTTPUnauthorized(headers={"WWW-Authenticate": "Basic"})
        file = checkout.top / ".git" / request.match_info["path"]
        return web.FileResponse(file) if file.is_file() else web.Response(status=404)

    application = web.Application()
    application.router.add_get("/shop.git/{path:.+}", serve_git)
    async with TestServer(application) as server:
        yield Landing(repository=str(server.make_url("/shop.git")), builders=trusted_keys("ci")), shown


async def test_private_repository_is_read_with_rotating_credentials(checkout: Checkout, tmp_path: Path) -> None:
    commit = checkout.commit("one")
    (folder := tmp_path / "it's shown").mkdir()
    repositories = RepositoryMirrors(tmp_path / "mirrors", OutboundCredentials(folder))
    async with private(checkout) as (landing, shown):
        with pytest.raises(Refused) as refused:
            await repositories.history(landing, commit, "shop.yaml")
        assert "could not read Username" in refused.value.text()
        wrong = landing.repository.replace("http://", "http://desk:wrong@").replace("/shop.git", "\n")
        (folder / "git-credentials").write_text(wrong)
        with pytest.raises(Refused) as refused:
            await repositories.history(landing, commit, "shop.yaml")
        assert "Authentication failed" in refused.value.text()
        assert encode_basic_auth("desk", "wrong") in shown
        assert "wrong" not in refused.value.text()
        assert (folder / "git-credentials").read_text() == wrong, "nobody else writes there"
        (folder / "git-credentials").write_text(wrong.replace("wrong", "open"))
        assert (await repositories.history(landing, commit, "shop.yaml")).landed
        elsewhere = landing.repository.replace("127.0.0.1", "localhost")
        shown.clear()
        with pytest.raises(Refused):
            await repositories.history(msgspec.structs.replace(landing, repository=elsewhere), commit, "shop.yaml")
        assert set(shown) == {""}, "it is for one host alone"


@pytest.fixture
def repositories(tmp_path: Path) -> RepositoryMirrors:
    return RepositoryMirrors(tmp_path / "mirrors", OutboundCredentials())


async def test_landed_commit_has_file_and_authors(checkout: Checkout, repositories: RepositoryMirrors) -> None:
    first = checkout.commit("one", message=f"Begin\n\nCo-authored-by: Ben <{BEN}>\nCo-authored-by: eve@example.com")
    second = checkout.commit("two", by=BEN)
    found = await repositories.history(checkout.landing, first, "shop.yaml")
    assert (found.landed, found.file_digest) == (True, hashlib.sha256(b"one").hexdigest())
    assert found.change.authors == {ANN, BEN, "eve@example.com"}
    found = await repositories.history(checkout.landing, second, "shop.yaml")
    assert (found.change.authors, found.file_digest) == ({BEN}, hashlib.sha256(b"two").hexdigest())
    assert (await repositories.history(checkout.landing, second, "other.yaml")).file_digest == ""


async def test_commit_on_another_branch_has_not_landed(checkout: Checkout, repositories: RepositoryMirrors) -> None:
    checkout.commit("one")
    checkout.git("checkout", "-q", "-b", "side")
    side = checkout.commit("two", by=BEN)
    assert not (await repositories.history(checkout.landing, side, "shop.yaml")).landed
    checkout.git("checkout", "-q", "main")
    assert not (await repositories.history(checkout.landing, side, "shop.yaml")).landed
    checkout.git("merge", "-q", "--no-ff", "-m", "Land it", "side", by="carla@example.com")
    merged = checkout.git("rev-parse", "HEAD")
    assert (await repositories.history(checkout.landing, side, "shop.yaml")).landed
    # The authors of the merged commits are authors of the merge, too.
    assert (await repositories.history(checkout.landing, merged, "shop.yaml")).change.authors == {
        BEN,
        "carla@example.com",
    }


async def test_commit_removed_from_the_branch_has_not_landed(
    checkout: Checkout, repositories: RepositoryMirrors
) -> None:
    checkout.commit("one")
    second = checkout.commit("two")
    assert (await repositories.history(checkout.landing, second, "shop.yaml")).landed
    checkout.git("reset", "-q", "--hard", "HEAD~1")
    assert not (await repositories.history(checkout.landing, second, "shop.yaml")).landed


async def test_valid_lines_of_the_note_are_reviews(checkout: Checkout, repositories: RepositoryMirrors) -> None:
    commit = checkout.commit("one")
    assert (await repositories.history(checkout.landing, commit, "shop.yaml")).change.notes.reviews == ()
    lines = [msgspec.json.encode(signed_review(each, commit)[0]).decode() for each in (ANN, BEN)]
    checkout.note(commit, lines[0], "Looks good to me", "{}", lines[1])
    found = await repositories.history(checkout.landing, commit, "shop.yaml")
    assert [each.signers(trusted_keys(ANN, BEN)) for each, _ in found.change.notes.reviews] == [{ANN}, {BEN}]


@pytest.mark.parametrize("commit", ["", "HEAD", "--upload-pack=evil", "0" * 40, "main"])
async def test_invalid_commit_has_not_landed(commit: str, checkout: Checkout, repositories: RepositoryMirrors) -> None:
    checkout.commit("one")
    assert not (await repositories.history(checkout.landing, commit, "shop.yaml")).landed


@pytest.mark.parametrize(
    ("address", "protocol"),
    [
        ("https://git.example.com/shop", "https"), ("ssh://git.example.com/shop", "ssh"),
        ("git@git.example.com:shop", "ssh"), ("/srv/shop", "file"), ("./a:b", "file"),
        ("file:///srv/shop", "file"), ("http://127.0.0.1/shop", "http"),
    ],
)  # fmt: skip
async def test_only_the_protocol_of_the_address_is_spoken(
    address: str, protocol: str, repositories: RepositoryMirrors, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So that no server redirects to a file, or to an address that is not protected."""
    spoken: set[str] = set()

    async def fake_git(_: Path, __: GitCommand, ___: object, protocol: str) -> GitResult:
        spoken.add(protocol)
        return GitResult(1)

    monkeypatch.setattr(repository, "run_git", fake_git)
    with pytest.raises(Refused):
        await repositories.history(Landing(repository=address, builders=trusted_keys("ci")), "0" * 40, "shop.yaml")
    assert spoken == {protocol}


@pytest.mark.parametrize("cancelled", ["while it is started", "while it runs"])
async def test_git_ends_with_its_helpers(
    checkout: Checkout, repositories: RepositoryMirrors, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cancelled: str
) -> None:
    """Otherwise each request to a server that does not answer would leave a process behind."""
    helper, pipe = tmp_path / "helper", tmp_path / "pipe"
    os.mkfifo(pipe)
    helper.write_text(f"#!/bin/sh\nexec 9> {pipe}\nexec sleep 30\n")
    helper.chmod(0o700)
    monkeypatch.setenv("GIT_SSH_COMMAND", str(helper))
    slow = msgspec.structs.replace(checkout.landing, repository="git.example.com:shop")
    helper_runs = asyncio.Event()
    if cancelled == "while it is started":
        create = asyncio.create_subprocess_exec

        async def create_slowly(*words: str, **options: Any) -> asyncio.subprocess.Process:
            process = await create(*words, **options)
            if "fetch" in words:
                await helper_runs.wait()
            return process

        monkeypatch.setattr(asyncio, "create_subprocess_exec", create_slowly)
    asked = asyncio.create_task(repositories.history(slow, "0" * 40, "shop.yaml"))
    async with asyncio.timeout(60):
        # Opened once the helper has opened it, and at its end once no process has it.
        with await asyncio.to_thread(pipe.open, "rb") as ended:
            asked.cancel()
            await asyncio.sleep(0)
            helper_runs.set()
            await asyncio.wait({asked})
            assert await asyncio.to_thread(ended.read) == b""


async def test_unreadable_repository_is_reported_with_output_of_git(
    checkout: Checkout, repositories: RepositoryMirrors
) -> None:
    elsewhere = msgspec.structs.replace(checkout.landing, repository=str(checkout.top / "none"))
    with pytest.raises(Refused) as refused:
        await repositories.history(elsewhere, "0" * 40, "shop.yaml")
    assert f"{checkout.top}/none: git fetch failed with exit code 128" in refused.value.text()
    commit = checkout.commit("one")
    other = msgspec.structs.replace(checkout.landing, branch="release")
    with pytest.raises(Refused, match="git fetch failed"):
        await repositories.history(other, commit, "shop.yaml")


async def test_repository_address_cannot_execute_commands(repositories: RepositoryMirrors, tmp_path: Path) -> None:
    evil = Landing(repository=f"ext::sh -c touch% {tmp_path}/ran", builders=trusted_keys("ci"))
    with pytest.raises(Refused, match="ext:: is not accepted"):
        await repositories.history(evil, "0" * 40, "shop.yaml")
    assert not (tmp_path / "ran").exists()
