"""What is refused, as problem+json; and what went wrong, without a word of what it was about."""

from __future__ import annotations

from functools import lru_cache

import msgspec
import structlog
from aiohttp import web
from aiohttp.typedefs import Handler

from pincompute.base.problem import Problem, Refused
from pincompute.base.reasons import INTERNAL, METHOD_UNKNOWN, PATH_UNKNOWN
from pincompute.submission.queue import KEPT, Busy
from pincompute.submission.speech import PROBLEM

log = structlog.get_logger()


@web.middleware
async def problems(request: web.Request, handler: Handler) -> web.StreamResponse:
    headers: dict[str, str] = {}
    try:
        return await handler(request)
    except Busy as busy:
        return _told(kept(busy.problems), {"Retry-After": str(busy.seconds)})
    except Refused as refused:
        told = refused.problems
    except web.HTTPNotFound:
        told = (Problem(PATH_UNKNOWN, f"there is nothing at {request.path}"),)
    except web.HTTPMethodNotAllowed as error:
        headers = {"Allow": ", ".join(sorted(error.allowed_methods))}
        told = (Problem(METHOD_UNKNOWN, f"{request.path} is asked by {headers['Allow']}, and not by {request.method}"),)
    except web.HTTPException:
        raise
    except Exception:
        # What went wrong is for the log; it may hold what is nobody's business.
        log.exception("a request failed", method=request.method, path=request.path)
        told = (Problem(INTERNAL, "the desk failed at this request; its log says more"),)
    return _told(document(told), headers)


def _told(document: tuple[int, bytes], headers: dict[str, str]) -> web.Response:
    status, body = document
    return web.Response(body=body, status=status, content_type=PROBLEM, headers=headers)


def document(problems: tuple[Problem, ...]) -> tuple[int, bytes]:
    document = Refused(*problems).json()
    return document["status"], msgspec.json.encode(document)


kept = lru_cache(KEPT)(document)
"""Of what many are told with the same words; what is told to one may be long, and is nobody else's."""
