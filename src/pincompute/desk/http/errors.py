"""Renders refusals and failures as problem+json (RFC 9457). Details of failures go to the log only."""

from __future__ import annotations

from functools import lru_cache

import msgspec
import structlog
from aiohttp import web
from aiohttp.typedefs import Handler

from pincompute.base.problem import Problem, Refused
from pincompute.base.reasons import DATABASE_FULL, INTERNAL, METHOD_UNKNOWN, PATH_UNKNOWN
from pincompute.desk.http.endpoint import PROBLEM_JSON
from pincompute.desk.limits.request_queue import MAX_CACHED_PROBLEMS, Busy
from pincompute.desk.store.database import DatabaseFull

log = structlog.get_logger()


@web.middleware
async def problem_middleware(request: web.Request, handler: Handler) -> web.StreamResponse:
    headers: dict[str, str] = {}
    try:
        return await handler(request)
    except Busy as busy:
        return _problem_response(cached_problem_document(busy.problems), {"Retry-After": str(busy.retry_after_s)})
    except Refused as refused:
        problems = refused.problems
    except web.HTTPNotFound:
        problems = (Problem(PATH_UNKNOWN, f"no such path: {request.path}"),)
    except web.HTTPMethodNotAllowed as error:
        headers = {"Allow": ", ".join(sorted(error.allowed_methods))}
        what = f"{request.path} allows {headers['Allow']}, not {request.method}"
        problems = (Problem(METHOD_UNKNOWN, what),)
    except DatabaseFull:
        # Not with a traceback: it is repeated for every request.
        log.error("the disk of the database is full", method=request.method, path=request.path)
        problems = (Problem(DATABASE_FULL, "nothing was stored: the disk of the desk's database is full"),)
    except web.HTTPException:
        raise
    except Exception:
        # The exception may quote confidential values, so the response does not have it.
        log.exception("request failed", method=request.method, path=request.path)
        problems = (Problem(INTERNAL, "the desk failed to handle this request: see its log"),)
    return _problem_response(problem_document(problems), headers)


def _problem_response(document: tuple[int, bytes], headers: dict[str, str]) -> web.Response:
    status, body = document
    return web.Response(body=body, status=status, content_type=PROBLEM_JSON, headers=headers)


def problem_document(problems: tuple[Problem, ...]) -> tuple[int, bytes]:
    """The status and the body."""
    document = Refused(*problems).json()
    return document["status"], msgspec.json.encode(document)


cached_problem_document = lru_cache(MAX_CACHED_PROBLEMS)(problem_document)
"""For rejections by a limit, which are the same for many callers. Other refusals may be long, and are not repeated."""
