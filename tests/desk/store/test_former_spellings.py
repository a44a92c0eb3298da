"""A database that version 0.1 has written is read by this one: commands, results, refusals and idempotency keys."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncGenerator
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import msgspec
import pytest

from pincompute.api.change import Pause, Scale
from pincompute.api.workload_detail import ChangeResult
from pincompute.base.problem import Refused
from pincompute.base.reasons import CONFLICT
from pincompute.desk.http.responses import submission_response
from pincompute.desk.store import ledger, outbox, record
from pincompute.desk.store.database import Connection, Database, open_database
from pincompute.desk.store.former_spellings import decode_change, decode_command
from pincompute.desk.store.record import Submission, SubmissionRecord, SubmissionState
from pincompute.desk.transaction import find_repeated
from pincompute.planning.footprint import WorkloadKey
from pincompute.platforms.protocol import ChangeWorkload, DeleteWorkload, PutWorkload

CLUSTER, PROJECT, NAME = "main", "ads", "hello"
KEY = WorkloadKey(PROJECT, "PinterestService", NAME)


@pytest.fixture
async def database(tmp_path: Path) -> AsyncGenerator[Database]:
    file = tmp_path / "desk.db"
    with sqlite3.connect(file) as connection:
        connection.executescript((Path(__file__).parent / "record_of_version_0_1.sql").read_text())
    connection.close()
    opened = await open_database(str(file))
    yield opened
    await opened.close()


async def find(database: Database, id_: str) -> SubmissionRecord:
    found = await database.transact(partial(record.find_by_id, project=PROJECT, id_=id_))
    assert found
    return found


async def test_undelivered_commands_are_read(database: Database) -> None:
    entries = await database.transact(partial(outbox.undelivered_entries, cluster=CLUSTER))
    assert [each.command for each in entries] == [
        ChangeWorkload(Scale(replicas=5), ("hello gets 5 copies",)),
        DeleteWorkload("u-1"),
    ]
    holdings = await database.transact(partial(ledger.held_by_tier, cluster=CLUSTER, project=PROJECT))
    assert {tier: [each.pods for each in held.values()] for tier, held in holdings.items()} == {"on-demand": [5]}
    pending = await database.transact(partial(outbox.undelivered_of_project, cluster=CLUSTER, project=PROJECT))
    assert [(each.id, each.caller, each.verb) for each in pending] == [
        ("submission-3", "ann", "scale"),
        ("submission-4", "ann", "delete"),
    ]


def test_every_command_is_read_as_it_is_written() -> None:
    for command in (PutWorkload({"spec": {"copies": 1}}), ChangeWorkload(Scale(replicas=2), ()), DeleteWorkload()):
        assert decode_command(msgspec.json.encode(command).decode()) == command


async def test_result_of_a_change_is_returned_in_the_present_spelling(database: Database) -> None:
    submission = await find(database, "submission-2")
    assert submission.state is SubmissionState.DELIVERED
    body = submission_response(submission).body
    assert isinstance(body, bytes)
    assert msgspec.json.decode(body, type=ChangeResult).messages == ["hello gets 3 copies"]
    deploy = await find(database, "submission-1")
    assert submission_response(deploy, status=201).body == deploy.decisions[-1].words.encode()


async def test_refusal_has_the_present_reason(database: Database) -> None:
    submission = await find(database, "submission-5")
    assert submission.decisions[0].rule == "ChangedMeanwhile"
    with pytest.raises(Refused) as refused:
        submission_response(submission)
    assert refused.value.problems[0].reason is CONFLICT


async def test_request_repeated_after_the_upgrade_is_recognized(database: Database) -> None:
    def find_again(connection: Connection, replicas: int) -> list[SubmissionRecord]:
        document = msgspec.json.encode(Scale(replicas=replicas)).decode()
        at = datetime(2026, 2, 1, tzinfo=UTC)
        again = Submission("submission-9", at, "ann", CLUSTER, KEY, "scale", document, "key-2", NAME)
        return find_repeated(connection, [again])

    assert [each.id for each in await database.transact(partial(find_again, replicas=3))] == ["submission-2"]
    with pytest.raises(Refused, match="already used for a different request"):
        await database.transact(partial(find_again, replicas=4))


def test_change_of_a_former_client_is_read() -> None:
    assert decode_change(b'{"change": "scale", "copies": 3}') == Scale(replicas=3)
    assert decode_change(b'{"change": "scale", "replicas": 3}') == Scale(replicas=3)
    assert decode_change(b'{"change": "pause", "because": "of \\"copies\\""}') == Pause(because='of "copies"')
    for wrong in (
        b'{"change": "scale", "copies": -1}',
        b'{"change": "pause", "copies": 3}',
        b'["copies"]',
        b'"copies"',
    ):
        with pytest.raises(msgspec.ValidationError):
            decode_change(wrong)
