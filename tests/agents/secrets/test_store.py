"""Versions, grants, encryption and the log of the secret store, on SQLite and PostgreSQL."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec
import pytest

from certificate_factory import NOW, TRUST_DOMAIN, issue_authority, issue_svid
from manual_clock import ManualClock
from pincompute.agents.callers import Caller, pod_caller
from pincompute.agents.secrets import store as store_module
from pincompute.agents.secrets.key_provider import FileKeyProvider
from pincompute.agents.secrets.projects import KnownProject
from pincompute.agents.secrets.store import SecretStore
from pincompute.api import secret as api
from pincompute.api.secret import VersionState
from pincompute.base.database import open_sql_database
from pincompute.base.key_file import KEY_BYTES
from pincompute.base.problem import Problem, Refused
from pincompute.base.reasons import SECRET_CONFLICT, SECRET_NOT_GRANTED, SECRET_UNKNOWN, SECRETS_UNAVAILABLE
from pincompute.objects.secret_reference import SecretReference, parse_reference
from pincompute.planning.pods.certificate_approval import CLOCK_SKEW
from postgres_server import new_database, postgres_server
from secret_stores import add_secret, open_secret_database, project_namespace, rotate_secret

WEB = Caller("", "me", "web")
DB = SecretReference("me", "db")


@pytest.fixture(scope="module")
def postgres() -> Iterator[Path]:
    with postgres_server() as socket:
        yield socket


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture(params=["sqlite", "postgresql"])
def address(request: pytest.FixtureRequest) -> str:
    """Address of an empty database; empty for a file."""
    return new_database(request.getfixturevalue("postgres")) if request.param == "postgresql" else ""


@pytest.fixture
async def opened_store(tmp_path: Path, clock: ManualClock, address: str) -> AsyncGenerator[SecretStore]:
    async with open_secret_database(tmp_path, "me", "ads", clock=clock, where=address) as opened:
        yield opened


async def resolved(store: SecretStore, text: str, project: str = "me", workload: str = "web") -> int | str:
    """The version that a workload gets, or the code of the reason for which it gets none."""
    (found,) = await store.resolve(project, workload, [parse_reference(text, project)])
    return found.reason.code if isinstance(found, Problem) else found


async def states(store: SecretStore) -> dict[int, VersionState]:
    detail = await store.describe(api.DescribeSecret(project="me", name="db"))
    return {each.number: each.state for each in detail.versions}


async def test_rotation_promotes_the_new_version_and_keeps_the_former_active(opened_store: SecretStore) -> None:
    await add_secret(opened_store, "me", "db", b"one")
    await rotate_secret(opened_store, "me", "db", b"two")
    assert await states(opened_store) == {1: VersionState.ACTIVE, 2: VersionState.PRIMARY}
    assert (await opened_store.read_value(WEB, DB)).value == b"two"
    assert (await opened_store.read_value(WEB, DB._replace(version=1))).value == b"one"


async def test_unpromoted_version_is_not_delivered(opened_store: SecretStore) -> None:
    await add_secret(opened_store, "me", "db", b"one")
    await rotate_secret(opened_store, "me", "db", b"two", promote=False)
    assert await states(opened_store) == {1: VersionState.PRIMARY, 2: VersionState.ACTIVE}
    assert (await opened_store.read_value(WEB, DB)).value == b"one"


async def test_inactive_version_is_refused_also_to_workloads_that_pin_it(opened_store: SecretStore) -> None:
    await add_secret(opened_store, "me", "db")
    await rotate_secret(opened_store, "me", "db", b"two")
    change = api.SetVersionState(project="me", name="db", version=1, state=VersionState.INACTIVE)
    await opened_store.set_state(change)
    assert await resolved(opened_store, "db@1") == SECRET_UNKNOWN.code
    assert await resolved(opened_store, "db@2") == 2


async def test_primary_version_cannot_be_deactivated(opened_store: SecretStore) -> None:
    await add_secret(opened_store, "me", "db")
    change = api.SetVersionState(project="me", name="db", version=1, state=VersionState.INACTIVE)
    with pytest.raises(Refused) as refused:
        await opened_store.set_state(change)
    assert refused.value.problems[0].reason is SECRET_CONFLICT


async def test_other_projects_need_a_grant(opened_store: SecretStore) -> None:
    await add_secret(opened_store, "ads", "key")
    assert await resolved(opened_store, "ads/key") == SECRET_NOT_GRANTED.code
    await opened_store.grant(api.GrantSecret(project="ads", name="key", grantee="workload:me/web"))
    assert await resolved(opened_store, "ads/key") == 1
    assert await resolved(opened_store, "ads/key", workload="other") == SECRET_NOT_GRANTED.code
    await opened_store.revoke(api.RevokeSecret(project="ads", name="key", grantee="workload:me/web"))
    assert await resolved(opened_store, "ads/key") == SECRET_NOT_GRANTED.code


async def test_own_project_can_be_narrowed_to_one_workload(opened_store: SecretStore) -> None:
    await add_secret(opened_store, "me", "db")
    await opened_store.grant(api.GrantSecret(project="me", name="db", grantee="workload:me/web"))
    await opened_store.revoke(api.RevokeSecret(project="me", name="db", grantee="project:me"))
    assert await resolved(opened_store, "db") == 1
    assert await resolved(opened_store, "db", workload="other") == SECRET_NOT_GRANTED.code


async def test_reveal_needs_ownership_or_a_grant(opened_store: SecretStore) -> None:
    await add_secret(opened_store, "me", "db", b"one")
    asked = api.RevealSecret(project="me", name="db", caller="vera", grantees=["person:vera", "group:oncall"])
    with pytest.raises(Refused) as refused:
        await opened_store.reveal(asked)
    assert refused.value.problems[0].reason is SECRET_NOT_GRANTED
    await opened_store.grant(api.GrantSecret(project="me", name="db", grantee="group:oncall"))
    assert (await opened_store.reveal(asked)).value == b"one"
    await opened_store.reveal(asked)
    log = await opened_store.read_log(api.ReadSecretLog(project="me", name="db", limit=10, before=10**9))
    # Every reveal is an entry of its own.
    assert [each.act for each in log.entries] == ["reveal", "reveal", "grant", "create"]


async def test_repeated_reads_of_a_workload_are_one_entry_an_hour(
    opened_store: SecretStore, clock: ManualClock
) -> None:
    await add_secret(opened_store, "me", "db")
    for _ in range(50):
        await opened_store.read_value(WEB, DB)
    clock.at += timedelta(hours=2)
    await opened_store.read_value(WEB, DB)
    log = await opened_store.read_log(api.ReadSecretLog(project="me", name="db", limit=100, before=10**9))
    assert [each.act for each in log.entries] == ["read", "read", "create"]
    (reader,) = (await opened_store.describe(api.DescribeSecret(project="me", name="db"))).readers
    assert (reader.reader, reader.version) == ("workload:me/web", 1)


async def test_log_survives_deletion_of_the_secret(opened_store: SecretStore) -> None:
    await add_secret(opened_store, "me", "db")
    await opened_store.delete(api.DeleteSecret(project="me", name="db", caller="ann"))
    assert await resolved(opened_store, "db") == SECRET_UNKNOWN.code
    log = await opened_store.read_log(api.ReadSecretLog(project="me", name="db", limit=1, before=10**9))
    assert [each.act for each in log.entries] == ["delete"]
    assert log.next == log.entries[0].number


async def test_old_entries_of_the_log_are_removed(opened_store: SecretStore, clock: ManualClock) -> None:
    await add_secret(opened_store, "me", "db")
    clock.at += timedelta(days=500)
    await opened_store.prune_audit_log()
    log = await opened_store.read_log(api.ReadSecretLog(project="me", name="db", limit=10, before=10**9))
    assert log.entries == []


async def test_list_has_the_primary_version_of_each_secret(opened_store: SecretStore) -> None:
    await add_secret(opened_store, "me", "db")
    await rotate_secret(opened_store, "me", "db", b"two")
    await add_secret(opened_store, "me", "api")
    await add_secret(opened_store, "ads", "key")
    found = await opened_store.list_secrets(api.ListSecrets(project="me"))
    assert [(each.name, each.primary, each.versions) for each in found] == [("api", 1, 1), ("db", 2, 2)]


async def test_rotation_beyond_the_limit_removes_the_oldest_inactive_version(
    opened_store: SecretStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store_module, "MAX_VERSIONS", 2)
    await add_secret(opened_store, "me", "db")
    await rotate_secret(opened_store, "me", "db", b"two")
    with pytest.raises(Refused, match="versions in use"):
        await rotate_secret(opened_store, "me", "db", b"three")
    change = api.SetVersionState(project="me", name="db", version=1, state=VersionState.INACTIVE)
    await opened_store.set_state(change)
    await rotate_secret(opened_store, "me", "db", b"three")
    assert await states(opened_store) == {2: VersionState.ACTIVE, 3: VersionState.PRIMARY}


async def test_new_project_of_the_same_name_does_not_get_the_secrets(opened_store: SecretStore) -> None:
    await add_secret(opened_store, "me", "db")
    # The deletion was missed.
    await opened_store.observe_namespace(project_namespace("me", "another-uid", "2026-01-20T00:00:00Z"))
    assert await resolved(opened_store, "db") == SECRET_UNKNOWN.code
    known = opened_store.project("me")
    assert not known.issued(WEB._replace(issued_at=datetime(2026, 1, 19, tzinfo=UTC)))
    assert known.issued(WEB._replace(issued_at=datetime(2026, 1, 20, tzinfo=UTC)))


def test_first_certificate_of_a_new_project_is_accepted() -> None:
    """The signer dates it back, to before the creation of the project."""
    created = NOW - timedelta(seconds=5)
    svid = issue_svid(issue_authority(), begin=NOW - CLOCK_SKEW)
    caller = pod_caller(svid.der, TRUST_DOMAIN)
    assert KnownProject("uid", created.isoformat()).issued(caller)
    former = issue_svid(issue_authority(), begin=NOW - CLOCK_SKEW - timedelta(seconds=6))
    assert not KnownProject("uid", created.isoformat()).issued(pod_caller(former.der, TRUST_DOMAIN))


async def test_deletion_of_a_project_removes_its_secrets(opened_store: SecretStore) -> None:
    await add_secret(opened_store, "me", "db")
    await opened_store.remove_namespace(project_namespace("me"))
    await opened_store.observe_namespace(project_namespace("me"))
    assert await opened_store.list_secrets(api.ListSecrets(project="me")) == []


async def test_late_deletion_event_spares_the_new_project(opened_store: SecretStore) -> None:
    await opened_store.observe_namespace(project_namespace("me", "another-uid"))
    await add_secret(opened_store, "me", "db")
    await opened_store.remove_namespace(project_namespace("me"))
    assert await resolved(opened_store, "db") == 1


async def test_store_serves_known_projects_while_the_cluster_is_down(tmp_path: Path) -> None:
    async with open_secret_database(tmp_path, "me") as first:
        await add_secret(first, "me", "db")
    async with open_secret_database(tmp_path) as restarted:
        assert await resolved(restarted, "db") == 1


async def test_keys_are_rotated_without_losing_older_secrets(tmp_path: Path) -> None:
    async with open_secret_database(tmp_path, "me") as store:
        await add_secret(store, "me", "db", b"one")
    keys = msgspec.json.decode((tmp_path / "keys").read_bytes(), type=dict[str, bytes])
    (tmp_path / "keys").write_bytes(msgspec.json.encode({**keys, "2": b"k" * KEY_BYTES}))
    async with open_secret_database(tmp_path) as store:
        await rotate_secret(store, "me", "db", b"two")
        assert (await store.read_value(WEB, DB._replace(version=1))).value == b"one"
        assert (await store.read_value(WEB, DB)).value == b"two"


@pytest.mark.parametrize("content", [b"", b"{}", b"[]", b'{"1": "AAAA"}', b'{"1": 1}'])
def test_invalid_key_file_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "keys").write_bytes(content)
    with pytest.raises(Refused) as refused:
        FileKeyProvider(tmp_path / "keys")
    assert refused.value.problems[0].reason is SECRETS_UNAVAILABLE


async def test_lost_key_is_reported_and_does_not_stop_the_store(tmp_path: Path) -> None:
    async with open_secret_database(tmp_path, "me") as store:
        await add_secret(store, "me", "db")
    (tmp_path / "keys").write_bytes(msgspec.json.encode({"2": b"k" * KEY_BYTES}))
    async with open_secret_database(tmp_path) as store:
        with pytest.raises(Refused) as refused:
            await store.read_value(WEB, DB)
        assert refused.value.problems[0].reason is SECRETS_UNAVAILABLE
        await add_secret(store, "me", "fresh", b"new")
        assert (await store.read_value(WEB, DB._replace(name="fresh"))).value == b"new"


async def test_database_file_is_private(tmp_path: Path) -> None:
    database = open_sql_database(str(tmp_path / "secrets.sqlite"))
    assert (tmp_path / "secrets.sqlite").stat().st_mode & 0o777 == 0o600
    await database.close()
