"""The desk's database, with the leadership over it and the migrations of its tables."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Protocol

import sqlalchemy as sql
from alembic import command
from alembic.config import Config

from pincompute.base import database as base
from pincompute.base.database import (
    BUSY_TIMEOUT_MS as BUSY_TIMEOUT_MS,
    Connection as Connection,
    DatabaseFull as DatabaseFull,
    TransactionBody as TransactionBody,
)
from pincompute.desk.leadership import Leadership, file_leadership, postgres_leadership

_WRITE_NOTHING = sql.text("UPDATE alembic_version SET version_num = version_num")


class Database(base.Database, Protocol):
    def acquire_leadership(self, platform: str) -> AbstractAsyncContextManager[Leadership]:
        """Entered once no other desk has the leadership for this platform."""
        ...


class SqliteDatabase(base.SqliteDatabase):
    def acquire_leadership(self, platform: str) -> AbstractAsyncContextManager[Leadership]:
        return file_leadership(self.file)


class PostgresDatabase(base.PostgresDatabase):
    def acquire_leadership(self, platform: str) -> AbstractAsyncContextManager[Leadership]:
        return postgres_leadership(self.url, platform)


async def open_database(address: str) -> Database:
    """A file or `postgresql://…`, migrated to the tables of this version."""
    database = PostgresDatabase(address) if "://" in address else SqliteDatabase(Path(address))
    await database.transact(migrate, slow=True)
    return database


def migrate(connection: Connection, revision: str = "head") -> None:
    """Migrates the tables to a revision, from whichever they have."""
    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent / "migrations"))
    config.attributes["connection"] = connection
    command.upgrade(config, revision)


def write_nothing(connection: Connection) -> None:
    """A write that changes no value: it fails whenever others would."""
    connection.execute(_WRITE_NOTHING)
