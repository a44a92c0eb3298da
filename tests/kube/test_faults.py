"""Faults that a real API server cannot be made to show: overload, expired pages, hanging and lost connections."""

from __future__ import annotations

import asyncio

import pytest
from aiohttp import web

from fake_api_server import SHORT_LIMITS, Responder, fake_api_server, respond_with
from pincompute.kube.errors import ApiError, Gone, Unreachable
from pincompute.kube.resource import PODS


def page(token: str, *names: str) -> Responder:
    async def answer(_: web.Request) -> web.Response:
        items = [{"metadata": {"name": name}} for name in names]
        return web.json_response({"metadata": {"resourceVersion": "7", "continue": token}, "items": items})

    return answer


GONE = respond_with(410, '{"kind":"Status","code":410,"reason":"Expired","message":"too old"}')
BUSY = respond_with(429, '{"kind":"Status","code":429,"message":"busy"}', **{"Retry-After": "1"})


async def silence(_: web.Request) -> web.Response:
    await asyncio.Event().wait()
    raise AssertionError


async def silent_watch(request: web.Request) -> web.StreamResponse:
    response = web.StreamResponse()
    await response.prepare(request)
    await response.write(b'{"type":"ADDED","object":{"metadata":{"name":"web"}}}\n{"type":"MODI')
    await asyncio.Event().wait()
    return response


async def cut(request: web.Request) -> web.Response:
    assert request.transport is not None
    request.transport.abort()
    return web.Response()


async def test_list_restarts_when_next_page_expired() -> None:
    async with fake_api_server(page("next", "a", "b"), GONE, page("next", "a"), page("", "c")) as (client, requests):
        listing = await client.list(PODS)
    assert [item["metadata"]["name"] for item in listing.items] == ["a", "c"]
    assert [request.query.get("continue") for request in requests] == [None, "next", None, "next"]
    assert requests[0].query["limit"] == "500"


async def test_list_gives_up_when_pages_keep_expiring() -> None:
    async with fake_api_server(GONE) as (client, requests):
        with pytest.raises(Gone):
            await client.list(PODS)
    assert len(requests) == 3


async def test_retries_write_after_429_with_retry_after() -> None:
    async with fake_api_server(BUSY, respond_with(201, "{}")) as (client, requests):
        assert await client.create(PODS, {"metadata": {"name": "web"}}, manager="test") == {}
    assert len(requests) == 2


async def test_does_not_retry_write_after_lost_connection() -> None:
    async with fake_api_server(cut) as (client, requests):
        with pytest.raises(Unreachable, match="was lost: the server closed the connection"):
            await client.create(PODS, {"metadata": {"name": "web"}}, manager="test")
    assert len(requests) == 1


async def test_retries_read_after_lost_connection() -> None:
    async with fake_api_server(cut, respond_with(200, '{"kind":"Pod"}')) as (client, _):
        assert await client.get(PODS, "web", "me") == {"kind": "Pod"}


async def test_request_times_out() -> None:
    async with fake_api_server(silence, limits=SHORT_LIMITS) as (client, _):
        with pytest.raises(Unreachable, match="stopped responding: timed out"):
            await client.delete(PODS, "web", "me")


async def test_watch_without_events_times_out() -> None:
    async with fake_api_server(silent_watch, limits=SHORT_LIMITS) as (client, _):
        events = client.watch(PODS)
        assert (await anext(events)).object["metadata"]["name"] == "web"
        with pytest.raises(Unreachable, match="stopped responding: timed out"):
            await anext(events)


async def test_error_page_of_proxy_is_shown() -> None:
    async with fake_api_server(respond_with(502, "<h1>Bad Gateway</h1>")) as (client, _):
        with pytest.raises(ApiError) as caught:
            await client.get(PODS, "web", "me")
    assert caught.value.text().splitlines() == [
        "pods me/web: the response is not from Kubernetes (HTTP 502): Bad Gateway  [ClusterUnreachable]",
        "  next: pin status",
    ]


async def test_rejects_login_page_with_status_200() -> None:
    async with fake_api_server(respond_with(200, "<h1>Log in</h1>")) as (client, _):
        for call in (client.get(PODS, "web", "me"), client.list(PODS), anext(client.watch(PODS))):
            with pytest.raises(ApiError, match="the response is not from Kubernetes: Log in"):
                await call


async def test_sends_user_agent() -> None:
    async with fake_api_server(respond_with(200, "{}")) as (client, requests):
        await client.get(PODS, "web", "me")
    assert requests[0].headers["User-Agent"].startswith("pincompute/")
    assert requests[0].headers["User-Agent"].endswith(" test")


async def test_logs_are_split_into_lines() -> None:
    async with fake_api_server(respond_with(200, "one\n\nthree")) as (client, requests):
        assert [line async for line in client.logs("me", "web", container="c", tail=3)] == ["one", "", "three"]
    assert requests[0].path == "/api/v1/namespaces/me/pods/web/log"
    assert dict(requests[0].query) == {"container": "c", "tailLines": "3"}
