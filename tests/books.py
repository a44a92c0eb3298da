"""What tests of the record share: a database in memory, submissions, and what they ask for."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from datetime import UTC, datetime

import sqlalchemy as sql

from pincompute.api.project import Project, ProjectSpec, Quota, TierQuota
from pincompute.api.wire import Metadata
from pincompute.planning.quotas.footprint import Footprint, Place
from pincompute.submission.database import Connection, migrate
from pincompute.submission.platform import Remove, Rendered
from pincompute.submission.record import Submission

NOW = datetime(2026, 1, 31, 12, tzinfo=UTC)
CLUSTER = "main"


@contextmanager
def memory() -> Generator[sql.Engine]:
    engine = sql.create_engine("sqlite://", poolclass=sql.StaticPool)
    with engine.begin() as connection:
        migrate(connection)
    yield engine
    engine.dispose()


@contextmanager
def tried(engine: sql.Engine) -> Generator[Connection]:
    """What is done there is undone afterwards."""
    with engine.connect() as connection, connection.begin() as transaction:
        yield connection
        transaction.rollback()


def project(**on_demand: int) -> Project:
    quota = Quota(on_demand=TierQuota(**on_demand))
    return Project(
        metadata=Metadata(name="ads"), spec=ProjectSpec(owner="team-ads", contact="#ads-oncall", quota=quota)
    )


def place(name: str) -> Place:
    return Place("ads", "PinterestService", name)


def submission(number: int, name: str = "web", key: str = "", document: str = "spec: {}") -> Submission:
    return Submission(f"s-{number}", NOW, "ann", CLUSTER, place(name), "deploy", document, key)


def cores(count: int, tier: str = "on-demand") -> Footprint:
    """So many pods of one processor each."""
    return Footprint(tier, cpu=1000 * count, pods=count)


def rendered(owner: Project | None, footprint: Footprint | None, name: str = "web") -> Rendered:
    return Rendered(place(name), Remove(), None, footprint, owner)
