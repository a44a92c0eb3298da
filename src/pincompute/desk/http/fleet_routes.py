"""Endpoints for administrators: the fleet, and the roll of a runtime."""

from __future__ import annotations

import msgspec
from aiohttp import web

from pincompute.admission.authorization import Permission
from pincompute.api.fleet import Fleet, FleetPod, RollStatus
from pincompute.api.runtime import Roll
from pincompute.base.problem import Problem, Refused, refuse_all
from pincompute.base.reasons import DOCUMENT_INVALID, RUNTIME_UNKNOWN
from pincompute.desk.desk import Desk
from pincompute.desk.http.auth import requires
from pincompute.desk.http.endpoint import ResponseMode, endpoint
from pincompute.desk.http.path_parameters import path_number
from pincompute.desk.http.requests import call_context, decode_body
from pincompute.desk.http.responses import json_response, stream_response
from pincompute.objects.content import Object

_object: msgspec.json.Decoder[Object] = msgspec.json.Decoder(Object)
_INVALID = "invalid change of a roll"


class FleetRoutes:
    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    def route_table(self) -> list[web.RouteDef]:
        roll = "/v1/runtimes/{number}/roll"
        return [
            web.get("/v1/fleet", self.fleet),
            web.get("/v1/fleet/pods", self.pods),
            web.patch(roll, self.change),
            web.get(roll, self.follow),
        ]

    @requires(Permission.ADMINISTER)
    @endpoint(response=Fleet)
    async def fleet(self, _: web.Request) -> web.StreamResponse:
        """All workloads, and the runtime that each is planned by."""
        return json_response(await self._desk.platform.runtimes.fleet())

    @requires(Permission.ADMINISTER)
    @endpoint(response=list[FleetPod])
    async def pods(self, _: web.Request) -> web.StreamResponse:
        """All pods of all workloads, and the runtime that each was created with."""
        return json_response(await self._desk.platform.runtimes.list_pods())

    @requires(Permission.ADMINISTER)
    @endpoint(
        response=RollStatus,
        request_body=Roll,
        example={"paused": "ann: looking at errors"},
        reasons=(DOCUMENT_INVALID, RUNTIME_UNKNOWN),
    )
    async def change(self, request: web.Request) -> web.StreamResponse:
        """Change settings of a runtime's roll; null restores a default."""
        number, change = path_number(request, "number"), _checked_change(decode_body(request, _object.decode, _INVALID))
        return json_response(await self._desk.change_roll(number, change, call_context(request)))

    @requires(Permission.ADMINISTER)
    @endpoint(response=RollStatus, mode=ResponseMode.STREAM, reasons=(RUNTIME_UNKNOWN,))
    async def follow(self, request: web.Request) -> web.StreamResponse:
        """The state of a roll, and then each change."""
        return await stream_response(request, self._desk.platform.runtimes.follow_roll(path_number(request, "number")))


def _checked_change(change: Object) -> Object:
    """Refuses invalid fields, if they are among those that change."""
    try:
        roll = msgspec.convert({name: value for name, value in change.items() if value is not None}, Roll)
    except msgspec.DecodeError as error:
        raise Refused(Problem(DOCUMENT_INVALID, f"{_INVALID}: {error}")) from error
    # Some fields are valid only together with others that are set already: those the cluster validates.
    errors = [each for each in roll.field_errors() if each.path[0] in change and each.path[0] != "breakHolds"]
    refuse_all(Problem(DOCUMENT_INVALID, each.what, note=each.note, next=each.next) for each in errors)
    return change
