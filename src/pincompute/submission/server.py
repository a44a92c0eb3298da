"""The desk's HTTP face: JSON and problem+json in and out, streams as one JSON document a line."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from typing import TypeVar

import msgspec
from aiohttp import web
from aiohttp.typedefs import Handler

from pincompute.api.account import Account, Answer, Changed
from pincompute.api.change import Change, Scale
from pincompute.api.documents import MAX_BYTES
from pincompute.api.glass import Wish
from pincompute.api.logs import Said, Wanted
from pincompute.api.preview import BuildPreview, Preview
from pincompute.api.provenance import ProvenanceAccount
from pincompute.api.receipt import Outcome, Receipt
from pincompute.api.summary import Sight, Summary
from pincompute.api.tenancy import Tenancy, Tenant
from pincompute.api.whoami import SignIn, Whoami
from pincompute.api.workload import Workload
from pincompute.base.problem import Problem, Refused
from pincompute.base.reasons import (
    COPY_UNKNOWN,
    DOCUMENT_INVALID,
    KIND_UNKNOWN,
    NO_LOGS,
    REPOSITORY_FAILED,
    SET_REFUSED,
    STORE_FAILED,
    SUBMISSION_UNKNOWN,
    WORKLOAD_UNKNOWN,
)
from pincompute.controller.fleet import Fleets
from pincompute.planning.rights import Verb
from pincompute.submission.about_routes import AboutRoutes
from pincompute.submission.answers import all_became, became, json_of, receipt, stream
from pincompute.submission.connections import heard, receive
from pincompute.submission.decide import Sender
from pincompute.submission.desk import Desk
from pincompute.submission.doorstep import Doorstep
from pincompute.submission.entry_routes import EntryRoutes
from pincompute.submission.fleet_routes import FleetRoutes
from pincompute.submission.guards import NOTHING, SIGNED_IN, WHO, guards, needs
from pincompute.submission.paths import word_in
from pincompute.submission.people.door import Door
from pincompute.submission.refusals import problems
from pincompute.submission.requests import OfOne, Wished, asked, body_of, names_in, said, sender_of, wish_in
from pincompute.submission.speech import BUILT, CHANGED, DOCUMENT, DOCUMENTS, HELLO, PLAIN, SUBMITTED, Manner, speaks
from pincompute.submission.turns import Limits, turns

K = TypeVar("K")
Submit = Callable[[str, str, Sender, Wish | None], Awaitable[K]]
"""A text to a project, by somebody, maybe through the glass; and what became of it."""
_change: msgspec.json.Decoder[Change] = msgspec.json.Decoder(Change)


def application(
    desk: Desk, fleets: Fleets, door: Door, sign_in: SignIn | None = None, limits: Limits | None = None
) -> web.Application:
    """The whole API, behind one door; where people sign in stands before it."""
    known, allowed = guards(door, desk.rights, desk.clock)
    doorstep = Doorstep()
    let_in, in_turn = turns(limits or Limits(), desk.clock, doorstep)
    # Whoever is sent away has had nothing begun for them; what it costs to learn whether somebody may has its turn.
    passing = [heard, problems, known, let_in, carried_through, in_turn, allowed]
    app = web.Application(middlewares=passing, client_max_size=MAX_BYTES)
    receive(app, doorstep)
    for each in ways(desk, fleets, sign_in or SignIn()):
        # By this and by nothing else: a stream has no head without a body.
        app.router.add_route(each.method, each.path, each.handler)
    return app


def ways(desk: Desk, fleets: Fleets, sign_in: SignIn) -> list[web.RouteDef]:
    """Every way to ask."""
    routes = Routes(desk, sign_in)
    workload = "/v1/projects/{project}/workloads/{name}"
    found = [
        web.get("/healthz", _healthz),
        web.get("/v1/sign-in", routes.sign_in),
        web.get("/v1/whoami", routes.whoami),
        web.get("/v1/projects", routes.projects),
        web.get("/v1/projects/{project}", routes.project),
        web.post("/v1/projects/{project}/submissions", routes.submit),
        web.get("/v1/projects/{project}/submissions/{id}", routes.submission),
        web.post("/v1/projects/{project}/sets", routes.submit_set),
        web.post("/v1/projects/{project}/builds/{name}/{version}/submissions", routes.deploy),
        web.get("/v1/projects/{project}/builds/{name}/{version}/plans", routes.plan_build),
        web.post("/v1/projects/{project}/plans", routes.plan),
        web.get("/v1/projects/{project}/workloads", routes.list),
        web.get("/v1/projects/{project}/changes", routes.watch),
        web.get(workload, routes.get),
        web.delete(workload, routes.delete),
        web.post(f"{workload}/changes", routes.change),
        web.get(f"{workload}/account", routes.account),
        web.get(f"{workload}/provenance", routes.provenance),
        web.get(f"{workload}/why", routes.why),
        web.get(f"{workload}/progress", routes.follow),
        web.get(f"{workload}/logs", routes.logs),
        *EntryRoutes(desk).all(workload),
        *FleetRoutes(fleets).all(),
    ]
    found += AboutRoutes(found, sign_in).all()
    return found


class Routes:
    def __init__(self, desk: Desk, sign_in: SignIn) -> None:
        self._desk = desk
        self._sign_in = sign_in

    @needs(NOTHING)
    @speaks(gives=SignIn)
    async def sign_in(self, _: web.Request) -> web.StreamResponse:
        """Where people sign in; without an issuer nobody has to."""
        return json_of(self._sign_in)

    @needs(SIGNED_IN)
    @speaks(gives=Whoami)
    async def whoami(self, request: web.Request) -> web.StreamResponse:
        """Who asks, and what they are in which projects."""
        return json_of(await self._desk.rights.of(request[WHO]))

    @needs(SIGNED_IN)
    @speaks(gives=list[Tenant])
    async def projects(self, request: web.Request) -> web.StreamResponse:
        """Every project in which whoever asks has a role; for administrators all."""
        return json_of(await self._desk.projects(request[WHO]))

    @needs(Verb.LOOK)
    @speaks(gives=Tenancy)
    async def project(self, request: web.Request) -> web.StreamResponse:
        """A project: whose it is, who may what, what it may use and does, and what waits."""
        return json_of(await self._desk.project(word_in(request, "project")))

    @needs(Verb.DEPLOY)
    @speaks(
        gives=Summary,
        status=201,
        manner=Manner.RECORDED,
        takes=DOCUMENT,
        example=HELLO,
        asks=Wished,
        reasons=SUBMITTED,
    )
    async def submit(self, request: web.Request) -> web.StreamResponse:
        """Deploy a document."""
        return await self._submitted(request, self._desk.submit, partial(became, status=201))

    @needs(Verb.DEPLOY)
    @speaks(
        gives=list[Outcome],
        status=201,
        manner=Manner.TOGETHER,
        takes=DOCUMENTS,
        example=HELLO,
        asks=Wished,
        reasons=(*SUBMITTED, SET_REFUSED),
    )
    async def submit_set(self, request: web.Request) -> web.StreamResponse:
        """Submit documents, of which all are taken or none."""
        return await self._submitted(request, self._desk.submit_set, all_became)

    async def _submitted(
        self, request: web.Request, submit: Submit[K], told: Callable[[K], web.Response]
    ) -> web.StreamResponse:
        """What is no text is on record, too."""
        project, sender = word_in(request, "project"), sender_of(request)
        try:
            text = _text(request)
        except Refused as refused:
            return became(await self._desk.unreadable("", project, refused, sender))
        return told(await submit(text, project, sender, wish_in(request)))

    @needs(Verb.DEPLOY)
    @speaks(gives=Summary, status=201, manner=Manner.RECORDED, asks=Wished, reasons=(*SUBMITTED, *BUILT))
    async def deploy(self, request: web.Request) -> web.StreamResponse:
        """Deploy what was published as a version."""
        version, wish = word_in(request, "version"), wish_in(request)
        return became(await self._desk.deploy(*names_in(request), version, sender_of(request), wish), status=201)

    @needs(Verb.LOOK)
    @speaks(gives=Receipt, reasons=(SUBMISSION_UNKNOWN,))
    async def submission(self, request: web.Request) -> web.StreamResponse:
        """What became of a submission."""
        return json_of(receipt(await self._desk.submission(word_in(request, "project"), word_in(request, "id"))))

    @needs(Verb.LOOK)
    @speaks(gives=list[Preview], takes=DOCUMENTS, example=HELLO, reasons=(DOCUMENT_INVALID, KIND_UNKNOWN))
    async def plan(self, request: web.Request) -> web.StreamResponse:
        """What documents would become and change; nothing is written."""
        said = await self._desk.plan(_text(request), word_in(request, "project"), sender_of(request))
        return json_of(said)

    @needs(Verb.LOOK)
    @speaks(gives=BuildPreview, reasons=BUILT)
    async def plan_build(self, request: web.Request) -> web.StreamResponse:
        """What deploying a version would do, and whether it may."""
        version = word_in(request, "version")
        return json_of(await self._desk.plan_build(*names_in(request), version, sender_of(request)))

    @needs(Verb.LOOK)
    @speaks(gives=list[Summary])
    async def list(self, request: web.Request) -> web.StreamResponse:
        """The workloads of a project."""
        return json_of(await self._desk.all(word_in(request, "project")))

    @needs(Verb.LOOK)
    @speaks(gives=Sight, manner=Manner.LINES)
    async def watch(self, request: web.Request) -> web.StreamResponse:
        """The workloads of a project, and then what changes."""
        return await stream(request, self._desk.workloads.watch(word_in(request, "project")))

    @needs(Verb.LOOK)
    @speaks(gives=Workload, reasons=(WORKLOAD_UNKNOWN,))
    async def get(self, request: web.Request) -> web.StreamResponse:
        """The resource whole, as the cluster has it."""
        return json_of(await self._desk.workloads.find(*names_in(request)))

    @needs(Verb.CHANGE)
    @speaks(gives=Changed, manner=Manner.RECORDED, takes=Change, example=Scale(copies=2), reasons=CHANGED)
    async def change(self, request: web.Request) -> web.StreamResponse:
        """Change one thing of what is there."""
        change = said(request, _change, "this is no change that there is")
        return became(await self._desk.change(*names_in(request), change, sender_of(request)))

    @needs(Verb.LOOK)
    @speaks(gives=Account, reasons=(WORKLOAD_UNKNOWN,))
    async def account(self, request: web.Request) -> web.StreamResponse:
        """All that is known of a workload."""
        return json_of(await self._desk.account(*names_in(request)))

    @needs(Verb.LOOK)
    @speaks(gives=ProvenanceAccount, reasons=(WORKLOAD_UNKNOWN, STORE_FAILED, REPOSITORY_FAILED))
    async def provenance(self, request: web.Request) -> web.StreamResponse:
        """From which commit a workload comes, each link looked at now."""
        return json_of(await self._desk.provenance(*names_in(request)))

    @needs(Verb.LOOK)
    @speaks(gives=Answer, reasons=(WORKLOAD_UNKNOWN,))
    async def why(self, request: web.Request) -> web.StreamResponse:
        """Why a workload is not as wanted."""
        return json_of(await self._desk.why(*names_in(request)))

    @needs(Verb.DELETE)
    @speaks(status=204, manner=Manner.RECORDED, asks=OfOne, reasons=CHANGED)
    async def delete(self, request: web.Request) -> web.StreamResponse:
        """Delete a workload."""
        which = asked(request, OfOne, "no workload is named like this")
        return became(await self._desk.delete(*names_in(request), which.uid, sender_of(request)), status=204)

    @needs(Verb.LOOK)
    @speaks(gives=Summary, manner=Manner.LINES, reasons=(WORKLOAD_UNKNOWN,))
    async def follow(self, request: web.Request) -> web.StreamResponse:
        """How a workload stands, and then each change, until it is gone."""
        return await stream(request, self._desk.follow(*names_in(request)))

    @needs(Verb.LOOK)
    @speaks(
        gives=Said,
        manner=Manner.LINES,
        asks=Wanted,
        reasons=(DOCUMENT_INVALID, WORKLOAD_UNKNOWN, COPY_UNKNOWN, NO_LOGS),
    )
    async def logs(self, request: web.Request) -> web.StreamResponse:
        """What a workload printed, and what it prints."""
        wanted = asked(request, Wanted, "no lines can be asked for like this")
        return await stream(request, self._desk.workloads.logs(*names_in(request), wanted))


def _text(request: web.Request) -> str:
    try:
        return body_of(request).decode()
    except UnicodeDecodeError as error:
        raise Refused(Problem(DOCUMENT_INVALID, f"the document is not UTF-8: {error}")) from error


@needs(NOTHING)
@speaks(gives=PLAIN)
async def _healthz(_: web.Request) -> web.Response:
    """Whether the desk is well."""
    return web.Response(text="ok\n")


@web.middleware
async def carried_through(request: web.Request, handler: Handler) -> web.StreamResponse:
    """What changes something is done to its end, and on record, also when whoever asked for it has left."""
    if request.method == "GET":
        return await handler(request)
    return await asyncio.shield(handler(request))
