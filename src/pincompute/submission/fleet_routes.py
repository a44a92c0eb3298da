"""The desk's face for runtimes: what runs, what a roll would do, and how it stands."""

from __future__ import annotations

import msgspec
from aiohttp import web

from pincompute.api.fleet import Copy, Fleet, Rolling
from pincompute.api.names import DESK
from pincompute.api.runtime import Roll
from pincompute.base.problem import Problem, Refused, refuse_all
from pincompute.base.reasons import DOCUMENT_INVALID, RUNTIME_UNKNOWN
from pincompute.controller.fleet import Fleets
from pincompute.objects.content import Object
from pincompute.planning.rights import Verb
from pincompute.submission.answers import json_of, stream
from pincompute.submission.guards import needs
from pincompute.submission.paths import number_in
from pincompute.submission.requests import said
from pincompute.submission.speech import Manner, speaks

_object: msgspec.json.Decoder[Object] = msgspec.json.Decoder(Object)
_WRONG = "no roll can be changed like this"


class FleetRoutes:
    def __init__(self, fleets: Fleets) -> None:
        self._fleets = fleets

    def all(self) -> list[web.RouteDef]:
        roll = "/v1/runtimes/{number}/roll"
        return [
            web.get("/v1/fleet", self.fleet),
            web.get("/v1/fleet/copies", self.copies),
            web.patch(roll, self.change),
            web.get(roll, self.follow),
        ]

    @needs(Verb.ADMINISTER)
    @speaks(gives=Fleet)
    async def fleet(self, _: web.Request) -> web.StreamResponse:
        """Everything that runs, and what it is planned by."""
        return json_of(await self._fleets.fleet())

    @needs(Verb.ADMINISTER)
    @speaks(gives=list[Copy])
    async def copies(self, _: web.Request) -> web.StreamResponse:
        """Every copy of every workload, and what it was made with."""
        return json_of(await self._fleets.copies())

    @needs(Verb.ADMINISTER)
    @speaks(
        gives=Rolling,
        takes=Roll,
        example={"paused": "ann: looking at errors"},
        reasons=(DOCUMENT_INVALID, RUNTIME_UNKNOWN),
    )
    async def change(self, request: web.Request) -> web.StreamResponse:
        """Change how a runtime is rolled: the fields that are named, and what is null is as it usually is."""
        return json_of(
            await self._fleets.roll(number_in(request, "number"), _change(said(request, _object, _WRONG)), manager=DESK)
        )

    @needs(Verb.ADMINISTER)
    @speaks(gives=Rolling, manner=Manner.LINES, reasons=(RUNTIME_UNKNOWN,))
    async def follow(self, request: web.Request) -> web.StreamResponse:
        """How a roll stands, and then each change."""
        return await stream(request, self._fleets.follow_roll(number_in(request, "number")))


def _change(change: Object) -> Object:
    """The fields that are to change; what is null goes, and is then as it usually is."""
    try:
        roll = msgspec.convert({name: value for name, value in change.items() if value is not None}, Roll)
    except msgspec.DecodeError as error:
        raise Refused(Problem(DOCUMENT_INVALID, f"{_WRONG}: {error}")) from error
    # One field may only be right together with another, which stands there already: the cluster sees them all.
    wrong = [each for each in roll.faults() if each.path[0] in change and each.path[0] != "breakHolds"]
    refuse_all(Problem(DOCUMENT_INVALID, each.what, note=each.note, next=each.next) for each in wrong)
    return change
