"""Endpoints of a project's secrets. Only `reveal` returns a value, and nothing of a value is recorded by the desk."""

from __future__ import annotations

from functools import partial
from typing import TypeVar

import msgspec
from aiohttp import web

from pincompute.admission.authorization import Permission
from pincompute.api import secret as api
from pincompute.api.secret import (
    ForceQuery,
    GrantChange,
    NewSecret,
    NewSecretVersion,
    SecretDetail,
    SecretLogPage,
    SecretLogQuery,
    SecretSummary,
    SecretValue,
    VersionChange,
    VersionQuery,
    VersionState,
)
from pincompute.base.problem import Problem, Refused
from pincompute.base.reasons import (
    DOCUMENT_INVALID,
    SECRET_CONFLICT,
    SECRET_INVALID,
    SECRET_NOT_GRANTED,
    SECRET_UNKNOWN,
    SECRETS_NOT_SERVED,
    SECRETS_UNAVAILABLE,
)
from pincompute.desk.desk import Desk
from pincompute.desk.http.auth import CALLER, requires
from pincompute.desk.http.endpoint import endpoint
from pincompute.desk.http.path_parameters import path_number, path_word
from pincompute.desk.http.requests import decode_body, parse_query, request_body
from pincompute.desk.http.responses import json_response
from pincompute.desk.secrets import grantees_of

T = TypeVar("T", NewSecret, NewSecretVersion)
_STORE = (SECRETS_NOT_SERVED, SECRETS_UNAVAILABLE)
_ONE = (*_STORE, SECRET_UNKNOWN)
_CHANGE = (*_ONE, SECRET_INVALID, SECRET_CONFLICT, DOCUMENT_INVALID)


class SecretRoutes:
    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    def route_table(self) -> list[web.RouteDef]:
        secrets = "/v1/projects/{project}/secrets"
        secret = f"{secrets}/{{secret}}"
        return [
            web.get(secrets, self.list),
            web.get(secret, self.describe),
            web.put(secret, self.create),
            web.delete(secret, self.delete),
            web.post(f"{secret}/versions", self.add_version),
            web.patch(f"{secret}/versions/{{secretVersion}}", self.set_state),
            web.post(f"{secret}/grants", self.grant),
            web.post(f"{secret}/revocations", self.revoke),
            web.post(f"{secret}/reveals", self.reveal),
            web.get(f"{secret}/log", self.log),
        ]

    @requires(Permission.VIEW)
    @endpoint(response=list[SecretSummary], reasons=_STORE)
    async def list(self, request: web.Request) -> web.StreamResponse:
        """The secrets of a project, without values."""
        command = api.ListSecrets(project=path_word(request, "project"))
        return json_response(await self._desk.secret_store.send(command, list[SecretSummary]))

    @requires(Permission.VIEW)
    @endpoint(response=SecretDetail, reasons=_ONE)
    async def describe(self, request: web.Request) -> web.StreamResponse:
        """A secret: its versions, grants and last readers, without values."""
        return await self._send(api.DescribeSecret(**_names(request)))

    @requires(Permission.MANAGE_SECRETS)
    @endpoint(response=SecretDetail, status=201, request_body=NewSecret, example=NewSecret(value=b"x"), reasons=_CHANGE)
    async def create(self, request: web.Request) -> web.StreamResponse:
        """Create a secret with its first version. The workloads of its project may have it."""
        new = _decode_value(request, NewSecret)
        return await self._send(api.CreateSecret(**_names(request), value=new.value), status=201)

    @requires(Permission.MANAGE_SECRETS)
    @endpoint(
        response=SecretDetail,
        status=201,
        request_body=NewSecretVersion,
        example=NewSecretVersion(value=b"y"),
        reasons=_CHANGE,
    )
    async def add_version(self, request: web.Request) -> web.StreamResponse:
        """Add a version, which becomes the primary one unless the request says otherwise."""
        new = _decode_value(request, NewSecretVersion)
        command = api.AddVersion(**_names(request), value=new.value, promote=new.promote)
        return await self._send(command, status=201)

    @requires(Permission.MANAGE_SECRETS)
    @endpoint(
        response=SecretDetail,
        request_body=VersionChange,
        example=VersionChange(state=VersionState.PRIMARY),
        reasons=_CHANGE,
    )
    async def set_state(self, request: web.Request) -> web.StreamResponse:
        """Make a version the primary one, active or inactive."""
        change = decode_body(request, partial(msgspec.json.decode, type=VersionChange), "invalid state")
        version = path_number(request, "secretVersion")
        return await self._send(api.SetVersionState(**_names(request), version=version, state=change.state))

    @requires(Permission.GRANT_SECRETS)
    @endpoint(
        response=SecretDetail,
        request_body=GrantChange,
        example=GrantChange(grantee="workload:ads/web"),
        reasons=_CHANGE,
    )
    async def grant(self, request: web.Request) -> web.StreamResponse:
        """Grant a secret to a project, a workload, a person or a group."""
        return await self._send(api.GrantSecret(**_names(request), grantee=_grantee(request)))

    @requires(Permission.GRANT_SECRETS)
    @endpoint(
        response=SecretDetail,
        request_body=GrantChange,
        example=GrantChange(grantee="workload:ads/web"),
        reasons=_CHANGE,
    )
    async def revoke(self, request: web.Request) -> web.StreamResponse:
        """Revoke a grant: new replicas get the secret no more. Rotate it to end the use of what was delivered."""
        return await self._send(api.RevokeSecret(**_names(request), grantee=_grantee(request)))

    @requires(Permission.VIEW)
    @endpoint(response=SecretValue, query=VersionQuery, reasons=(*_ONE, SECRET_NOT_GRANTED, DOCUMENT_INVALID))
    async def reveal(self, request: web.Request) -> web.StreamResponse:
        """The value of a version, for owners and for people with a grant; recorded in the log of the secret."""
        caller, names = request[CALLER], _names(request)
        query = parse_query(request, VersionQuery, "invalid version")
        denied = await self._desk.authorizer.find_problem(caller, Permission.GRANT_SECRETS, names["project"])
        command = api.RevealSecret(
            **names, version=query.version, grantees=grantees_of(caller), is_owner=denied is None
        )
        response = json_response(await self._desk.secret_store.send(command, SecretValue))
        response.headers["Cache-Control"] = "no-store"
        return response

    @requires(Permission.VIEW)
    @endpoint(response=SecretLogPage, query=SecretLogQuery, reasons=(*_STORE, DOCUMENT_INVALID))
    async def log(self, request: web.Request) -> web.StreamResponse:
        """A page of the log of a secret: every read and change, newest first."""
        query = parse_query(request, SecretLogQuery, "invalid page of the log")
        command = api.ReadSecretLog(**_names(request), limit=query.limit, before=query.before)
        return json_response(await self._desk.secret_store.send(command, SecretLogPage))

    @requires(Permission.GRANT_SECRETS)
    @endpoint(status=204, query=ForceQuery, reasons=(*_ONE, SECRET_CONFLICT, DOCUMENT_INVALID))
    async def delete(self, request: web.Request) -> web.StreamResponse:
        """Delete a secret with all versions; if workloads of its project name it, only with `force`."""
        names = _names(request)
        if not parse_query(request, ForceQuery, "invalid force").force:
            await self._refuse_used(names["project"], names["name"])
        await self._desk.secret_store.send(api.DeleteSecret(**names), type(None))
        return web.Response(status=204)

    async def _refuse_used(self, project: str, name: str) -> None:
        users = await self._desk.workloads_with_secret(project, name)
        if users:
            what = f"secret {name} is named by {', '.join(users[:5])}{' and others' if len(users) > 5 else ''}"
            next_ = f"remove it from their files, or pin secret delete {name} --force"
            raise Refused(Problem(SECRET_CONFLICT, what, next=next_))

    async def _send(self, command: api.SecretCommand, status: int = 200) -> web.StreamResponse:
        return json_response(await self._desk.secret_store.send(command, SecretDetail), status)


def _names(request: web.Request) -> dict[str, str]:
    """Project and name of the secret in the path, and the caller."""
    return {
        "project": path_word(request, "project"),
        "name": path_word(request, "secret"),
        "caller": str(request[CALLER]),
    }


def _decode_value(request: web.Request, type_: type[T]) -> T:
    """The body. Errors of decoding do not quote it."""
    try:
        return msgspec.json.decode(request_body(request), type=type_)
    except msgspec.ValidationError as error:
        limit = f"1 to {api.MAX_VALUE_BYTES:,} bytes"
        raise Refused(Problem(SECRET_INVALID, f"invalid secret: {error}", note=f"a value has {limit}")) from None
    except (msgspec.DecodeError, RecursionError):
        raise Refused(Problem(DOCUMENT_INVALID, "the request body is not valid JSON")) from None


def _grantee(request: web.Request) -> str:
    return decode_body(request, partial(msgspec.json.decode, type=GrantChange), "invalid grant").grantee
