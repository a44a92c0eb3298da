"""The desk's side of secrets: authorizes people, and calls the secret store with its own identity.

The store knows no people. It trusts the desk's certificate, and records the caller that the desk names.
"""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, TypeVar

import aiohttp
import msgspec

from pincompute.api import secret as api
from pincompute.api.identity import Identity, IdentityType
from pincompute.api.workload import Workload
from pincompute.base.problem import Problem, Refused, Where
from pincompute.base.reasons import SECRETS_NOT_SERVED, SECRETS_UNAVAILABLE

T = TypeVar("T")
REQUEST_TIMEOUT_S = 10.0


class SecretStoreClient:
    """Sends commands. Every failure is raised as SecretsUnavailable; refusals are those of the store."""

    def __init__(self, session: aiohttp.ClientSession) -> None:
        self._session = session

    async def send(self, command: api.SecretCommand, type_: type[T]) -> T:
        try:
            async with self._session.post("/v1/commands", data=msgspec.json.encode(command)) as response:
                body = await response.read()
        except (aiohttp.ClientError, OSError) as error:
            # Its text has the address only, never the command.
            raise _unavailable(str(error) or type(error).__name__) from None
        return _parse(response.status, body, type_)


class NoSecretStore:
    """Stands for the store on a platform without one."""

    async def send(self, command: api.SecretCommand, type_: type[T]) -> T:
        what = "this platform has no secret store"
        raise Refused(Problem(SECRETS_NOT_SERVED, what, next="pin up, on a machine that can run a real node"))


SecretStore = SecretStoreClient | NoSecretStore


def _parse(status: int, body: bytes, type_: type[T]) -> T:
    try:
        if status == 200:
            return msgspec.json.decode(body, type=type_)
        errors: list[dict[str, Any]] = msgspec.json.decode(body)["errors"]
        raise Refused(*map(Problem.from_json, errors))
    except (msgspec.DecodeError, KeyError, TypeError):
        raise _unavailable(f"HTTP status {status}") from None


def _unavailable(why: str) -> Refused:
    return Refused(Problem(SECRETS_UNAVAILABLE, f"the secret store does not answer: {why}", next="pin status"))


@asynccontextmanager
async def open_secret_store(address: str, tls: ssl.SSLContext) -> AsyncIterator[SecretStoreClient]:
    """A client that connects directly, with a client certificate."""
    timeout = aiohttp.ClientTimeout(total=REQUEST_TIMEOUT_S)
    connector = aiohttp.TCPConnector(ssl=tls)
    async with aiohttp.ClientSession(address, connector=connector, timeout=timeout) as session:
        yield SecretStoreClient(session)


async def secret_problems(store: SecretStore, workload: Workload) -> tuple[Problem, ...]:
    """Why a workload cannot have the secrets that it names. Raises Refused if the store cannot tell."""
    names = workload.spec.secrets
    if not names:
        return ()
    metadata = workload.metadata
    command = api.CheckReferences(project=metadata.namespace, workload=metadata.name, references=list(names))
    checked = await store.send(command, api.CheckedReferences)
    where = Where(object=metadata.key, field="spec.secrets")
    return tuple(Problem.from_json(each)._replace(where=where) for each in checked.problems)


def grantees_of(caller: Identity) -> list[str]:
    """The names under which the caller may hold a grant. Programs hold none: they have an identity of their own."""
    if caller.type is IdentityType.PROGRAM:
        return []
    return [f"person:{caller.name}", *(f"group:{each}" for each in sorted(caller.groups))]
