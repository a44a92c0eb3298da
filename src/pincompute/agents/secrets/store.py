"""The secret store: what the desk changes for people, and what pods read. Every operation is one transaction."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import timedelta
from functools import partial
from typing import TypeVar

import sqlalchemy as sql

from pincompute.agents.callers import Caller
from pincompute.agents.secrets import rows
from pincompute.agents.secrets.changes import Changes, SecretKey
from pincompute.agents.secrets.envelope import Envelope, close_envelope, open_envelope
from pincompute.agents.secrets.key_provider import KeyProvider
from pincompute.agents.secrets.projects import (
    KnownProject,
    Namespace,
    read_projects,
    record_project,
    remove_project,
)
from pincompute.agents.secrets.references import resolve_reference
from pincompute.agents.secrets.rows import Act, SecretRow, require_secret
from pincompute.agents.secrets.tables import audit, create_tables, grants, secrets, versions
from pincompute.api import secret as api
from pincompute.api.secret import (
    CheckedReferences,
    SecretDetail,
    SecretLogEntry,
    SecretLogPage,
    SecretSummary,
    SecretValue,
    VersionState,
)
from pincompute.base.clock import Clock
from pincompute.base.database import Connection, Database
from pincompute.base.problem import Problem, Refused
from pincompute.base.reasons import (
    PROJECT_UNKNOWN,
    SECRET_CONFLICT,
    SECRET_INVALID,
    SECRET_NOT_GRANTED,
    SECRET_UNKNOWN,
)
from pincompute.objects.secret_reference import SecretReference, parse_reference

T = TypeVar("T")
MAX_SECRETS_PER_PROJECT = 1_000
MAX_VERSIONS = 20
"""Of a secret. A rotation removes the oldest inactive one beyond that."""
MAX_GRANTS = 200
MAX_LISTED_READERS = 50
REPEATED_READ_S = 3600.0
"""A read that is repeated within this time is no new entry of the audit log."""
AUDIT_RETENTION = timedelta(days=400)


class SecretStore:
    """Secrets of all projects. `open` it, and feed it the cluster's namespaces."""

    def __init__(self, database: Database, provider: KeyProvider, clock: Clock) -> None:
        self._database = database
        self._provider = provider
        self._clock = clock
        self._projects: dict[str, KnownProject] = {}
        self.changes = Changes()

    async def open(self) -> None:
        await self._database.transact(create_tables, slow=True)
        self._projects = await self._database.transact(read_projects)

    async def observe_namespace(self, namespace: Namespace) -> None:
        name, known = namespace.metadata.name, _known_project(namespace)
        if self._projects.get(name) != known:
            await self._database.transact(partial(record_project, name=name, known=known))
            self._projects[name] = known

    async def remove_namespace(self, namespace: Namespace) -> None:
        name, uid = namespace.metadata.name, namespace.metadata.uid
        await self._database.transact(partial(remove_project, name=name, uid=uid))
        if self._projects.get(name, KnownProject("", "")).uid == uid:
            del self._projects[name]

    async def prune_audit_log(self) -> None:
        limit = (self._clock.now() - AUDIT_RETENTION).isoformat()
        await self._database.transact(lambda each: each.execute(audit.delete().where(audit.c.at < limit)), slow=True)

    def project(self, name: str) -> KnownProject:
        if found := self._projects.get(name):
            return found
        raise Refused(Problem(PROJECT_UNKNOWN, f"no project '{name}'", next="pin project"))

    # What pods read

    def keys_of(self, references: Sequence[SecretReference]) -> list[SecretKey]:
        return [(self._projects[each.project].uid, each.name) for each in references if each.project in self._projects]

    async def resolve(self, project: str, workload: str, references: Sequence[SecretReference]) -> list[int | Problem]:
        """For each reference the version that the workload gets, or why it gets none."""
        known = dict(self._projects)

        def read(connection: Connection) -> list[int | Problem]:
            return [resolve_reference(connection, known, project, workload, each) for each in references]

        return await self._database.transact(read)

    async def check_references(self, command: api.CheckReferences) -> CheckedReferences:
        """What a workload would get, before it is accepted."""
        references = [parse_reference(each, command.project) for each in command.references]
        found = await self.resolve(command.project, command.workload, references)
        by_reference = zip(command.references, found, strict=True)
        return CheckedReferences(
            problems=[each.json() for each in found if isinstance(each, Problem)],
            versions={text: each for text, each in by_reference if isinstance(each, int)},
        )

    async def read_value(self, caller: Caller, reference: SecretReference) -> SecretValue:
        """The value that a workload names. The audit log has the read before the value is sent."""
        known, reader = dict(self._projects), f"workload:{caller.project}/{caller.workload}"

        def read(connection: Connection) -> tuple[SecretRow, int, Envelope]:
            version = resolve_reference(connection, known, caller.project, caller.workload, reference)
            if isinstance(version, Problem):
                raise Refused(version)
            secret = require_secret(connection, reference.project, known[reference.project].uid, reference.name)
            return self._record_and_read(connection, secret, Act(reader, "read", version))

        return await self._open(*await self._database.transact(read))

    # What the desk does for people

    async def create(self, command: api.CreateSecret) -> SecretDetail:
        envelope = await self._close(command.project, command.name, command.value)

        def write(connection: Connection) -> SecretRow:
            uid = self.project(command.project).uid
            if rows.find_secret(connection, command.project, uid, command.name):
                what, next_ = f"secret {command.name} exists already", f"pin secret rotate {command.name}"
                raise Refused(Problem(SECRET_CONFLICT, what, next=next_))
            self._check_room(connection, command.project, uid)
            connection.execute(secrets.insert().values(project_uid=uid, name=command.name))
            secret = require_secret(connection, command.project, uid, command.name)
            self._add_version(connection, secret, 1, envelope, command)
            self._grant(connection, secret, f"project:{command.project}", command.caller)
            rows.record(connection, secret, Act(command.caller, "create", 1), self._now())
            return secret

        return await self._change(command, write)

    async def add_version(self, command: api.AddVersion) -> SecretDetail:
        envelope = await self._close(command.project, command.name, command.value)

        def write(connection: Connection) -> SecretRow:
            secret = self._require(connection, command)
            known = rows.list_versions(connection, secret)
            if len(known) >= MAX_VERSIONS:
                self._remove_oldest_inactive(connection, secret, [each.number for each in known if not _served(each)])
            number = known[0].number + 1
            self._add_version(connection, secret, number, envelope, command)
            if command.promote:
                rows.set_state(connection, secret, number, VersionState.PRIMARY)
            note = "" if command.promote else "not promoted"
            rows.record(connection, secret, Act(command.caller, "rotate", number, note), self._now())
            return secret

        return await self._change(command, write)

    async def set_state(self, command: api.SetVersionState) -> SecretDetail:
        def write(connection: Connection) -> SecretRow:
            secret = self._require(connection, command)
            states = {each.number: each.state for each in rows.list_versions(connection, secret)}
            present = states.get(command.version)
            if present is None:
                raise Refused(_version_unknown(command.name, command.version, sorted(states)))
            if present is VersionState.PRIMARY and command.state is not VersionState.PRIMARY:
                what = f"version {command.version} of {command.name} is the primary one"
                next_ = f"pin secret promote {command.name} VERSION, with another version"
                raise Refused(Problem(SECRET_CONFLICT, what, next=next_))
            rows.set_state(connection, secret, command.version, command.state)
            rows.record(connection, secret, Act(command.caller, str(command.state), command.version), self._now())
            return secret

        return await self._change(command, write)

    async def grant(self, command: api.GrantSecret) -> SecretDetail:
        def write(connection: Connection) -> SecretRow:
            secret = self._require(connection, command)
            held = {each.grantee for each in rows.list_grants(connection, secret)}
            if command.grantee not in held:
                if len(held) >= MAX_GRANTS:
                    what = f"secret {command.name} has {len(held)} grants, the maximum"
                    raise Refused(Problem(SECRET_INVALID, what, next="grant it to a project or a group"))
                self._grant(connection, secret, command.grantee, command.caller)
                act = Act(command.caller, "grant", note=command.grantee)
                rows.record(connection, secret, act, self._now())
            return secret

        return await self._change(command, write)

    async def revoke(self, command: api.RevokeSecret) -> SecretDetail:
        def write(connection: Connection) -> SecretRow:
            secret = self._require(connection, command)
            one = sql.and_(grants.c.secret == secret.number, grants.c.grantee == command.grantee)
            if not connection.execute(grants.delete().where(one)).rowcount:
                what = f"secret {command.name} is not granted to {command.grantee}"
                raise Refused(Problem(SECRET_UNKNOWN, what, next=f"pin secret show {command.name}"))
            act = Act(command.caller, "revoke", note=command.grantee)
            rows.record(connection, secret, act, self._now())
            return secret

        return await self._change(command, write)

    async def delete(self, command: api.DeleteSecret) -> None:
        def write(connection: Connection) -> SecretRow:
            secret = self._require(connection, command)
            connection.execute(secrets.delete().where(secrets.c.number == secret.number))
            rows.record(connection, secret, Act(command.caller, "delete"), self._now())
            return secret

        self._notify(await self._database.transact(write))

    async def reveal(self, command: api.RevealSecret) -> SecretValue:
        def read(connection: Connection) -> tuple[SecretRow, int, Envelope]:
            secret = self._require(connection, command)
            if not (command.is_owner or rows.is_granted(connection, secret, command.grantees)):
                what = f"secret {command.name} is not granted to {command.caller}"
                next_ = f"ask an owner of {command.project}: pin secret grant {command.name} person:NAME"
                raise Refused(Problem(SECRET_NOT_GRANTED, what, next=next_))
            version = rows.served_version(connection, secret, command.version)
            if not version:
                known = [each.number for each in rows.list_versions(connection, secret) if _served(each)]
                raise Refused(_version_unknown(command.name, command.version, sorted(known)))
            return self._record_and_read(connection, secret, Act(command.caller, "reveal", version), always=True)

        return await self._open(*await self._database.transact(read))

    async def list_secrets(self, command: api.ListSecrets) -> list[SecretSummary]:
        uid = self.project(command.project).uid
        return await self._database.transact(partial(_summaries, project_uid=uid), slow=True)

    async def describe(self, command: api.DescribeSecret) -> SecretDetail:
        return await self._database.transact(lambda each: _detail(each, self._require(each, command)))

    async def read_log(self, command: api.ReadSecretLog) -> SecretLogPage:
        """A page of the audit log of a secret, also after its deletion."""
        uid = self.project(command.project).uid
        read = partial(
            _log_page, project_uid=uid, name=command.name, limit=command.limit, before=command.before
        )  # fmt: skip
        return await self._database.transact(read, slow=True)

    # Steps

    def _now(self) -> str:
        return self._clock.now().isoformat(timespec="seconds")

    def _require(self, connection: Connection, command: api.SecretCommand) -> SecretRow:
        assert not isinstance(command, api.ListSecrets | api.CheckReferences)
        return require_secret(connection, command.project, self.project(command.project).uid, command.name)

    async def _change(self, command: api.SecretCommand, write: Callable[[Connection], SecretRow]) -> SecretDetail:
        """Executes a change, and wakes the pods that wait for it."""

        def write_and_describe(connection: Connection) -> tuple[SecretRow, SecretDetail]:
            secret = write(connection)
            return secret, _detail(connection, secret)

        secret, detail = await self._database.transact(write_and_describe)
        self._notify(secret)
        return detail

    def _notify(self, secret: SecretRow) -> None:
        self.changes.notify((secret.project_uid, secret.name))

    async def _close(self, project: str, name: str, value: bytes) -> Envelope:
        return await close_envelope(self._provider, value, f"{self.project(project).uid}/{name}")

    async def _open(self, secret: SecretRow, version: int, envelope: Envelope) -> SecretValue:
        return SecretValue(
            version=version,
            value=await open_envelope(self._provider, envelope, f"{secret.project_uid}/{secret.name}"),
        )

    def _record_and_read(
        self, connection: Connection, secret: SecretRow, act: Act, *, always: bool = False
    ) -> tuple[SecretRow, int, Envelope]:
        now = self._clock.now()
        repeated_since = "9999" if always else (now - timedelta(seconds=REPEATED_READ_S)).isoformat(timespec="seconds")
        rows.record_read(connection, secret, act, self._now(), repeated_since)
        one = sql.and_(versions.c.secret == secret.number, versions.c.number == act.version)
        row = connection.execute(versions.select().where(one)).one()
        return secret, act.version, Envelope(row.key_id, row.wrapped_key, row.sealed)

    def _check_room(self, connection: Connection, project: str, uid: str) -> None:
        count = sql.select(sql.func.count()).select_from(secrets).where(secrets.c.project_uid == uid)
        if connection.execute(count).scalar_one() >= MAX_SECRETS_PER_PROJECT:
            what = f"project {project} has {MAX_SECRETS_PER_PROJECT:,} secrets, the maximum"
            raise Refused(Problem(SECRET_INVALID, what, next="pin secret delete NAME, for one that is not used"))

    def _remove_oldest_inactive(self, connection: Connection, secret: SecretRow, inactive: list[int]) -> None:
        if not inactive:
            what = f"secret {secret.name} has {MAX_VERSIONS} versions in use, the maximum"
            raise Refused(Problem(SECRET_CONFLICT, what, next=f"pin secret deactivate {secret.name} VERSION"))
        oldest = sql.and_(versions.c.secret == secret.number, versions.c.number == min(inactive))
        connection.execute(versions.delete().where(oldest))

    def _add_version(
        self,
        connection: Connection,
        secret: SecretRow,
        number: int,
        envelope: Envelope,
        command: api.CreateSecret | api.AddVersion,
    ) -> None:
        state = VersionState.PRIMARY if number == 1 else VersionState.ACTIVE
        about = {"state": str(state), "created_at": self._now(), "created_by": command.caller}
        values = {"secret": secret.number, "number": number, "bytes": len(command.value), **about}
        connection.execute(versions.insert().values(**values, **envelope._asdict()))

    def _grant(self, connection: Connection, secret: SecretRow, grantee: str, caller: str) -> None:
        values = {"secret": secret.number, "grantee": grantee, "granted_at": self._now(), "granted_by": caller}
        connection.execute(grants.insert().values(**values))


def _known_project(namespace: Namespace) -> KnownProject:
    return KnownProject(namespace.metadata.uid, namespace.metadata.creation_timestamp)


def _served(version: api.SecretVersion) -> bool:
    return version.state is not VersionState.INACTIVE


def _version_unknown(name: str, version: int, known: list[int]) -> Problem:
    what = f"secret {name} has no version {version}"
    return Problem(SECRET_UNKNOWN, what, note=f"it has {', '.join(map(str, known))}", next=f"pin secret show {name}")


def _detail(connection: Connection, secret: SecretRow) -> SecretDetail:
    return SecretDetail(
        project=secret.project,
        name=secret.name,
        versions=rows.list_versions(connection, secret),
        grants=rows.list_grants(connection, secret),
        readers=rows.list_readers(connection, secret, MAX_LISTED_READERS),
    )


def _summaries(connection: Connection, project_uid: str) -> list[SecretSummary]:
    columns = (secrets.c.name, versions.c.number, versions.c.state, versions.c.created_at, versions.c.created_by)
    select = sql.select(*columns).join(versions, versions.c.secret == secrets.c.number)
    of_project = select.where(secrets.c.project_uid == project_uid).order_by(secrets.c.name, versions.c.number)
    found: dict[str, SecretSummary] = {}
    for row in connection.execute(of_project):
        before = found.get(row.name)
        is_primary = row.state == VersionState.PRIMARY
        found[row.name] = SecretSummary(
            name=row.name,
            primary=row.number if is_primary else before.primary if before else 0,
            versions=before.versions + 1 if before else 1,
            rotated_at=row.created_at,
            rotated_by=row.created_by,
        )
    return list(found.values())


def _log_page(connection: Connection, project_uid: str, name: str, limit: int, before: int) -> SecretLogPage:
    of_secret = sql.and_(audit.c.project_uid == project_uid, audit.c.name == name, audit.c.number < before)
    found = connection.execute(audit.select().where(of_secret).order_by(audit.c.number.desc()).limit(limit + 1)).all()
    names = SecretLogEntry.__struct_fields__
    entries = [SecretLogEntry(**{each: getattr(row, each) for each in names}) for row in found[:limit]]
    return SecretLogPage(entries=entries, next=entries[-1].number if len(found) > limit else None)
