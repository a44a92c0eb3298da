"""A repository that a tenant can push to, its published builds, and the part of the desk that decides on them."""

from __future__ import annotations

import subprocess
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec

from pincompute.admission.reviews import workload_of_build
from pincompute.api.attestation import Envelope, sign_statement
from pincompute.api.build import ATTESTATION_FILE, REVIEW_NOTES_REF, WORKLOAD_FILE, build_folder, review_statement
from pincompute.api.project import Project
from pincompute.api.workload import Workload
from pincompute.base.problem import Refused
from pincompute.desk.builds import BuildVerifier
from pincompute.desk.outbound_credentials import OutboundCredentials
from pincompute.desk.repository import RepositoryMirrors
from pincompute.desk.rollback_review import review_rollback_target
from pincompute.desk.store import record
from pincompute.desk.store.database import Connection, Database, open_database
from pincompute.desk.store.record import DEPLOY, DecidedBy, Decision, Submission, VerifiedBuild
from pincompute.planning.footprint import WorkloadKey
from pincompute.platforms.artifact_store import FolderStore
from signed_builds import TEXT, signed_build, signing_key, trusted_keys

ANN, BEN, CARLA, EVE = (f"{name}@example.com" for name in ("ann", "ben", "carla", "eve"))


class PushedRepository:
    """Ann, Ben and Carla are reviewers. Eve can push to the branch and to the notes."""

    def __init__(self, folder: Path, database: Database) -> None:
        self.top = folder / "shop"
        self.top.mkdir()
        self.git("init", "-q", "-b", "main")
        self.database = database
        self.store = folder / "artifacts"
        self.mirrors = folder / "mirrors"
        self.use_landing()
        self._count = 0
        self.restart_desk()

    def restart_desk(self) -> None:
        mirrors = RepositoryMirrors(self.mirrors, OutboundCredentials())
        self.builds = BuildVerifier(FolderStore(self.store), mirrors, self.database)

    def use_landing(self, **fields: Any) -> None:
        """Changes the review policy of the project."""
        people = trusted_keys(ANN, BEN, CARLA)
        landing = {"repository": str(self.top), "builders": trusted_keys("ci"), "people": people, **fields}
        spec = {"owner": "team-ads", "quota": {"on-demand": {"pods": 9}}, "review": "landed", "landing": landing}
        self.project = msgspec.convert({"metadata": {"name": "ads"}, "spec": spec, "kind": "Project"}, Project)

    # Actions of a tenant

    def git(self, *words: str, by: str = ANN, sent: str | bytes = "") -> str:
        names = ("-c", f"user.email={by}", "-c", f"user.name={by.partition('@')[0]}")
        text = sent.encode() if isinstance(sent, str) else sent
        done = subprocess.run(("git", "-C", str(self.top), *names, *words), check=True, capture_output=True, input=text)
        return done.stdout.decode().strip()

    def commit(self, subject: str, by: str = ANN, files: dict[str, str] | None = None) -> str:
        for name, text in (files or {"notes.txt": subject}).items():
            (self.top / name).write_text(text)
        self.git("add", ".")
        self.git("commit", "-q", "--allow-empty", "-m", subject, by=by)
        return self.head()

    def head(self) -> str:
        return self.git("rev-parse", "HEAD")

    def review(self, commit: str, *reviewers: str) -> None:
        for each in reviewers:
            self.note(commit, sign_statement(review_statement(commit, each, ""), signing_key(each)))

    def note(self, commit: str, *lines: Envelope | str) -> None:
        for each in lines:
            text = each if isinstance(each, str) else msgspec.json.encode(each).decode()
            self.git("notes", f"--ref={REVIEW_NOTES_REF}", "append", "-F", "-", commit, sent=text)

    def publish(self, version: str, commit: str = "", text: str = TEXT, by: str = "ci") -> None:
        """Publishes a build as CI does; of the head by default."""
        source = {"version": version, "repository": str(self.top)}
        build = signed_build(by=by, text=text, attested=text, commit=commit or self.head(), source=source)
        folder = self.store / build_folder("ads", "shop", version)
        folder.mkdir(parents=True)
        (folder / WORKLOAD_FILE).write_bytes(build.content)
        (folder / ATTESTATION_FILE).write_bytes(msgspec.json.encode(build.envelope))

    # Actions of the desk

    async def deploy(self, version: str) -> Workload:
        """Deploys a build and records it; raises Refused like the desk."""
        build = await self.builds.find_build("ads", "shop", version)
        verified = await self.builds.verify_build(build, self.project, break_glass=False)
        workload = workload_of_build(build)
        self._count += 1
        submission = Submission(
            f"s-{self._count}", datetime(2026, 1, 1, tzinfo=UTC), "dan", "main",
            WorkloadKey("ads", "PinterestService", "shop"), DEPLOY, version,
        )  # fmt: skip
        await self.database.transact(lambda connection: _record(connection, submission, workload, verified))
        return workload

    async def release(self, version: str, *reviewers: str, by: str = ANN) -> str:
        """Commits, reviews, publishes and deploys a version; returns its commit."""
        commit = self.commit(f"Release {version}", by, {"shop.yaml": TEXT, "version.txt": version})
        self.review(commit, *(reviewers or (BEN,)))
        self.publish(version)
        await self.deploy(version)
        return commit

    async def refusal(self, version: str) -> Refused:
        try:
            await self.deploy(version)
        except Refused as refused:
            return refused
        raise AssertionError(f"{version} was accepted")

    async def rollback(self, workload: Workload) -> None:
        await review_rollback_target(self.database, self.builds, workload, self.project)


def codes(refused: Refused) -> list[str]:
    return [each.reason.code for each in refused.problems]


def _record(connection: Connection, submission: Submission, workload: Workload, build: VerifiedBuild) -> None:
    record.insert_submission(connection, submission)
    accepted = Decision(DecidedBy.DESK, submission.at, accepted=True, rule="", words="")
    record.insert_decision(connection, submission, accepted)
    record.insert_revision(connection, submission, workload)
    record.insert_verified_build(connection, submission, build)


@asynccontextmanager
async def pushed_repository(folder: Path) -> AsyncGenerator[PushedRepository]:
    database = await open_database(str(folder / "desk.db"))
    try:
        yield PushedRepository(folder, database)
    finally:
        await database.close()


def fast_import(top: Path, commands: Sequence[str]) -> None:
    """Writes many commits at once."""
    subprocess.run(("git", "-C", str(top), "fast-import", "--quiet"), check=True, input="".join(commands).encode())
