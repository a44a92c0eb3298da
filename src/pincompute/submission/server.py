"""The desk's HTTP face: JSON and problem+json in and out, streams as one JSON document a line."""

from __future__ import annotations

import asyncio

import msgspec
import structlog
from aiohttp import web
from aiohttp.typedefs import Handler

from pincompute.api.change import Change
from pincompute.api.documents import MAX_BYTES
from pincompute.api.logs import Wanted
from pincompute.api.whoami import SignIn
from pincompute.base.problem import Problem, Refused
from pincompute.base.reasons import DOCUMENT_INVALID, INTERNAL
from pincompute.controller.fleet import Fleets
from pincompute.planning.rights import Verb
from pincompute.submission.answers import became, json_of, receipt, stream
from pincompute.submission.desk import Desk
from pincompute.submission.entry_routes import EntryRoutes
from pincompute.submission.fleet_routes import FleetRoutes
from pincompute.submission.guards import NOTHING, SIGNED_IN, WHO, guards, needs
from pincompute.submission.people.door import Door
from pincompute.submission.requests import names_in, sender_of, wish_in

log = structlog.get_logger()
_change: msgspec.json.Decoder[Change] = msgspec.json.Decoder(Change)


def application(desk: Desk, fleets: Fleets, door: Door, sign_in: SignIn | None = None) -> web.Application:
    """The whole API, behind one door; where people sign in stands before it."""
    routes = Routes(desk, sign_in or SignIn())
    passing = [_problems, *guards(door, desk.rights), carried_through]
    app = web.Application(middlewares=passing, client_max_size=MAX_BYTES)
    workload = "/v1/projects/{project}/workloads/{name}"
    app.add_routes(
        [
            web.get("/healthz", _healthz),
            web.get("/v1/sign-in", routes.sign_in),
            web.get("/v1/whoami", routes.whoami),
            web.post("/v1/projects/{project}/submissions", routes.submit),
            web.get("/v1/projects/{project}/submissions/{id}", routes.submission),
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
    )
    return app


def runner(app: web.Application) -> web.AppRunner:
    """Who only looks on is let go of when they leave; streams would otherwise keep the process from ending, too."""
    return web.AppRunner(app, access_log=None, shutdown_timeout=1.0, handler_cancellation=True)


class Routes:
    def __init__(self, desk: Desk, sign_in: SignIn) -> None:
        self._desk = desk
        self._sign_in = sign_in

    @needs(NOTHING)
    async def sign_in(self, _: web.Request) -> web.StreamResponse:
        return json_of(self._sign_in)

    @needs(SIGNED_IN)
    async def whoami(self, request: web.Request) -> web.StreamResponse:
        return json_of(await self._desk.rights.of(request[WHO]))

    @needs(Verb.DEPLOY)
    async def submit(self, request: web.Request) -> web.StreamResponse:
        project, sender = request.match_info["project"], sender_of(request)
        try:
            text = await _text(request)
        except Refused as refused:
            return became(await self._desk.unreadable("", project, refused, sender))
        return became(await self._desk.submit(text, project, sender, wish_in(request)), status=201)

    @needs(Verb.DEPLOY)
    async def deploy(self, request: web.Request) -> web.StreamResponse:
        version, wish = request.match_info["version"], wish_in(request)
        return became(await self._desk.deploy(*names_in(request), version, sender_of(request), wish), status=201)

    @needs(Verb.LOOK)
    async def submission(self, request: web.Request) -> web.StreamResponse:
        return json_of(receipt(await self._desk.submission(request.match_info["project"], request.match_info["id"])))

    @needs(Verb.LOOK)
    async def plan(self, request: web.Request) -> web.StreamResponse:
        said = await self._desk.plan(await _text(request), request.match_info["project"], sender_of(request))
        return json_of(said)

    @needs(Verb.LOOK)
    async def plan_build(self, request: web.Request) -> web.StreamResponse:
        return json_of(await self._desk.plan_build(*names_in(request), request.match_info["version"]))

    @needs(Verb.LOOK)
    async def list(self, request: web.Request) -> web.StreamResponse:
        return json_of(await self._desk.workloads.all(request.match_info["project"]))

    @needs(Verb.LOOK)
    async def watch(self, request: web.Request) -> web.StreamResponse:
        return await stream(request, self._desk.workloads.watch(request.match_info["project"]))

    @needs(Verb.LOOK)
    async def get(self, request: web.Request) -> web.StreamResponse:
        """The resource whole, as the cluster has it."""
        return json_of(await self._desk.workloads.find(*names_in(request)))

    @needs(Verb.CHANGE)
    async def change(self, request: web.Request) -> web.StreamResponse:
        try:
            change = _change.decode(await request.read())
        except msgspec.DecodeError as error:
            raise Refused(Problem(DOCUMENT_INVALID, f"this is no change that there is: {error}")) from error
        return became(await self._desk.change(*names_in(request), change, sender_of(request)))

    @needs(Verb.LOOK)
    async def account(self, request: web.Request) -> web.StreamResponse:
        return json_of(await self._desk.account(*names_in(request)))

    @needs(Verb.LOOK)
    async def provenance(self, request: web.Request) -> web.StreamResponse:
        return json_of(await self._desk.provenance(*names_in(request)))

    @needs(Verb.LOOK)
    async def why(self, request: web.Request) -> web.StreamResponse:
        return json_of(await self._desk.why(*names_in(request)))

    @needs(Verb.DELETE)
    async def delete(self, request: web.Request) -> web.StreamResponse:
        uid = request.query.get("uid", "")
        return became(await self._desk.delete(*names_in(request), uid, sender_of(request)), status=204)

    @needs(Verb.LOOK)
    async def follow(self, request: web.Request) -> web.StreamResponse:
        return await stream(request, self._desk.follow(*names_in(request)))

    @needs(Verb.LOOK)
    async def logs(self, request: web.Request) -> web.StreamResponse:
        try:
            wanted = msgspec.convert(dict(request.query), Wanted, strict=False)
        except msgspec.ValidationError as error:
            raise Refused(Problem(DOCUMENT_INVALID, f"no lines can be asked for like this: {error}")) from error
        return await stream(request, self._desk.workloads.logs(*names_in(request), wanted))


async def _text(request: web.Request) -> str:
    try:
        return (await request.read()).decode()
    except UnicodeDecodeError as error:
        raise Refused(Problem(DOCUMENT_INVALID, f"the document is not UTF-8: {error}")) from error
    except web.HTTPRequestEntityTooLarge as error:
        raise _too_large() from error


def _too_large() -> Refused:
    return Refused(Problem(DOCUMENT_INVALID, f"the document has more than {MAX_BYTES:,} bytes"))


@needs(NOTHING)
async def _healthz(_: web.Request) -> web.Response:
    return web.Response(text="ok\n")


@web.middleware
async def carried_through(request: web.Request, handler: Handler) -> web.StreamResponse:
    """What changes something is done to its end, and on record, also when whoever asked for it has left."""
    if request.method == "GET":
        return await handler(request)
    return await asyncio.shield(handler(request))


@web.middleware
async def _problems(request: web.Request, handler: Handler) -> web.StreamResponse:
    try:
        return await handler(request)
    except Refused as refused:
        document = refused.json()
    except web.HTTPRequestEntityTooLarge:
        document = _too_large().json()
    except web.HTTPException:
        raise
    except Exception:
        # What went wrong is for the log; it may hold what is nobody's business.
        log.exception("a request failed", method=request.method, path=request.path)
        document = Refused(Problem(INTERNAL, "the desk failed at this request; its log says more")).json()
    body = msgspec.json.encode(document)
    return web.Response(body=body, status=document["status"], content_type="application/problem+json")
