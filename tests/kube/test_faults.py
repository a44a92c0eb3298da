"""Faults that a real API server does not have at hand: busy, forgetful, silent, or not there behind its balancer."""

from __future__ import annotations

import asyncio

import pytest
from aiohttp import web

from pincompute.kube.errors import ApiError, Gone, Unreachable
from pincompute.kube.resource import PODS
from pretended import QUICK, Answer, pretending, says


def page(token: str, *names: str) -> Answer:
    async def answer(_: web.Request) -> web.Response:
        items = [{"metadata": {"name": name}} for name in names]
        return web.json_response({"metadata": {"resourceVersion": "7", "continue": token}, "items": items})

    return answer


GONE = says(410, '{"kind":"Status","code":410,"reason":"Expired","message":"too old"}')
BUSY = says(429, '{"kind":"Status","code":429,"message":"busy"}', **{"Retry-After": "1"})


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


async def test_a_list_is_begun_anew_when_its_next_page_is_forgotten() -> None:
    async with pretending(page("next", "a", "b"), GONE, page("next", "a"), page("", "c")) as (client, asked):
        listing = await client.list(PODS)
    assert [item["metadata"]["name"] for item in listing.items] == ["a", "c"]
    assert [request.query.get("continue") for request in asked] == [None, "next", None, "next"]
    assert asked[0].query["limit"] == "500"


async def test_a_list_that_is_always_forgotten_ends() -> None:
    async with pretending(GONE) as (client, asked):
        with pytest.raises(Gone):
            await client.list(PODS)
    assert len(asked) == 3


async def test_a_busy_server_is_asked_again_even_to_write() -> None:
    async with pretending(BUSY, says(201, "{}")) as (client, asked):
        assert await client.create(PODS, {"metadata": {"name": "web"}}, manager="test") == {}
    assert len(asked) == 2


async def test_a_write_whose_answer_is_lost_is_not_sent_twice() -> None:
    async with pretending(cut) as (client, asked):
        with pytest.raises(Unreachable, match="was lost: it hung up"):
            await client.create(PODS, {"metadata": {"name": "web"}}, manager="test")
    assert len(asked) == 1


async def test_a_read_whose_answer_is_lost_is_sent_again() -> None:
    async with pretending(cut, says(200, '{"kind":"Pod"}')) as (client, _):
        assert await client.get(PODS, "web", "me") == {"kind": "Pod"}


async def test_who_does_not_answer_is_not_waited_for_long() -> None:
    async with pretending(silence, limits=QUICK) as (client, _):
        with pytest.raises(Unreachable, match="fell silent: it took too long"):
            await client.delete(PODS, "web", "me")


async def test_a_watch_that_falls_silent_is_cut() -> None:
    async with pretending(silent_watch, limits=QUICK) as (client, _):
        events = client.watch(PODS)
        assert (await anext(events)).object["metadata"]["name"] == "web"
        with pytest.raises(Unreachable, match="fell silent: it took too long"):
            await anext(events)


async def test_what_a_balancer_says_is_shown() -> None:
    async with pretending(says(502, "<h1>Bad Gateway</h1>")) as (client, _):
        with pytest.raises(ApiError) as caught:
            await client.get(PODS, "web", "me")
    assert caught.value.text().splitlines() == [
        "pods me/web: the answer is not Kubernetes' (HTTP 502): Bad Gateway  [ClusterUnreachable]",
        "  next: pin status",
    ]


async def test_a_page_that_is_none_of_kubernetes() -> None:
    async with pretending(says(200, "<h1>Log in</h1>")) as (client, _):
        for asking in (client.get(PODS, "web", "me"), client.list(PODS), anext(client.watch(PODS))):
            with pytest.raises(ApiError, match="the answer is not Kubernetes': Log in"):
                await asking


async def test_who_asks_is_named() -> None:
    async with pretending(says(200, "{}")) as (client, asked):
        await client.get(PODS, "web", "me")
    assert asked[0].headers["User-Agent"].startswith("pincompute/")
    assert asked[0].headers["User-Agent"].endswith(" test")


async def test_logs_come_as_lines() -> None:
    async with pretending(says(200, "one\n\nthree")) as (client, asked):
        assert [line async for line in client.logs("me", "web", container="c", tail=3)] == ["one", "", "three"]
    assert asked[0].path == "/api/v1/namespaces/me/pods/web/log"
    assert dict(asked[0].query) == {"container": "c", "tailLines": "3"}
