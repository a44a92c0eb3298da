"""How an informer comes to its picture, by a stream or by pages, and what it says while it cannot."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest

from pincompute.base.problem import Problem
from pincompute.kube.errors import ApiError, Unreachable, error_of
from pincompute.kube.informer import LONGEST_REFUSED, Informer
from pincompute.kube.resource import PYTORCH_JOBS
from pincompute.kube.watch import Event
from scripted import Resting, Scripted, over


class Meta(msgspec.Struct, rename="camel"):
    name: str = ""
    labels: dict[str, str] = {}


class Job(msgspec.Struct):
    metadata: Meta


def item(name: str, revision: int, color: str = "red") -> dict[str, Any]:
    return {"metadata": {"name": name, "namespace": "me", "resourceVersion": str(revision), "labels": {"c": color}}}


def lines(*events: tuple[str, dict[str, Any]]) -> bytes:
    return b"\n".join(msgspec.json.encode({"type": type_, "object": each}) for type_, each in events)


def bookmark(revision: int, *, end: bool = False) -> tuple[str, dict[str, Any]]:
    marks = {"k8s.io/initial-events-end": "true"} if end else {}
    return "BOOKMARK", {"metadata": {"resourceVersion": str(revision), "annotations": marks}}


def page(revision: int, *items: dict[str, Any], token: str = "") -> bytes:
    return msgspec.json.encode({"metadata": {"resourceVersion": str(revision), "continue": token}, "items": items})


def status(code: int, reason: str) -> ApiError:
    return error_of(msgspec.json.encode({"kind": "Status", "code": code, "reason": reason, "message": "no"}))


GONE = status(410, "Expired")
REFUSED = status(422, "Invalid")
HTML = error_of(b"<h1>Bad Gateway</h1>", status=502)


class Followed(Informer[Job]):
    """What it told, and what it asked for until the script was at its end."""

    def __init__(self, *answers: bytes | ApiError, client: Any = None) -> None:
        self.transport = Scripted(*answers)
        self.clock = Resting()
        self.told: list[tuple[str, str]] = []
        self.objects: list[Job] = []
        self.problems: list[Problem | None] = []
        super().__init__(
            client or over(self.transport, self.clock),
            PYTORCH_JOBS,
            type=Job,
            on_change=self._note,
            on_problem=self.problems.append,
        )

    def _note(self, event: Event[Job]) -> None:
        self.told.append((event.type, event.object.metadata.name))
        self.objects.append(event.object)

    async def play(self) -> list[str]:
        task = asyncio.create_task(self.run())
        async with asyncio.timeout(60):
            await self.transport.done.wait()
        task.cancel()
        await asyncio.wait([task])
        return [how(request.query) for request in self.transport.asked]

    def names(self) -> list[str]:
        return [name for _, name in self.items]


def how(query: Any) -> str:
    if query.get("sendInitialEvents"):
        return "stream"
    return f"watch {query['resourceVersion']}" if query.get("watch") else "page"


async def test_one_stream_brings_what_is_there_and_what_happens() -> None:
    there = ("ADDED", item("a", 3)), ("ADDED", item("b", 4)), bookmark(7, end=True)
    followed = Followed(lines(*there, ("DELETED", item("a", 8)), bookmark(9)))
    assert await followed.play() == ["stream", "watch 9"]
    assert followed.told == [("ADDED", "a"), ("ADDED", "b"), ("DELETED", "a")]
    assert followed.synced.is_set()
    assert dict(followed.transport.asked[0].query) == {
        "watch": "true",
        "timeoutSeconds": "240",
        "allowWatchBookmarks": "true",
        "sendInitialEvents": "true",
        "resourceVersionMatch": "NotOlderThan",
    }


async def test_it_is_not_synced_before_all_was_told() -> None:
    followed = Followed(lines(("ADDED", item("a", 3))))
    await followed.play()
    assert (followed.names(), followed.synced.is_set(), followed.revision) == (["a"], False, 0)


@pytest.mark.parametrize(
    "answer", [REFUSED, status(400, "BadRequest"), lines(("ADDED", item("a", 3)), bookmark(5))]
)  # fmt: skip
async def test_a_server_that_streams_no_lists_is_asked_for_pages_and_that_is_remembered(answer: Any) -> None:
    first = Followed(answer, page(6, item("a", 3), token="next"), page(6, item("b", 4)))
    assert await first.play() == ["stream", "page", "page", "watch 6"]
    assert (first.names(), first.clock.slept, first.problems) == (["a", "b"], [], [])
    second = Followed(client=first._client)  # noqa: SLF001
    second.transport = first.transport
    first.transport.done.clear()
    assert await second.play() == ["stream", "page", "page", "watch 6", "page"]


async def test_a_new_list_keeps_what_did_not_change_and_finds_what_is_gone() -> None:
    begun = lines(("ADDED", item("a", 3)), ("ADDED", item("b", 4)), ("ADDED", item("c", 5)), bookmark(7, end=True))
    again = lines(("ADDED", item("a", 20)), ("ADDED", item("c", 21, "blue")), bookmark(22, end=True))
    followed = Followed(begun, GONE, again)
    assert await followed.play() == ["stream", "watch 7", "stream", "watch 22"]
    assert followed.told[3:] == [("MODIFIED", "c"), ("DELETED", "b")]
    # The very object: the one that was told anew is let go of at once.
    assert followed.items["me", "a"] is followed.objects[0]


async def test_pages_that_are_forgotten_half_way_lose_nothing() -> None:
    followed = Followed(REFUSED, page(6, item("a", 3), token="next"), GONE, page(9, item("b", 8)))
    assert await followed.play() == ["stream", "page", "page", "page", "watch 9"]
    assert followed.told == [("ADDED", "a"), ("ADDED", "b"), ("DELETED", "a")]


async def test_what_is_gone_before_the_list_ends_is_told_once() -> None:
    begun = lines(("ADDED", item("a", 3)), bookmark(7, end=True))
    again = lines(("ADDED", item("a", 3)), ("DELETED", item("a", 9)), bookmark(9, end=True))
    followed = Followed(begun, GONE, again)
    await followed.play()
    assert followed.told == [("ADDED", "a"), ("DELETED", "a")]


async def test_a_kind_that_is_not_there_is_a_problem_until_it_is() -> None:
    unknown = error_of(b"404 page not found", status=404)
    followed = Followed(*[unknown] * 9, lines(("ADDED", item("a", 3)), bookmark(7, end=True)))
    task = asyncio.create_task(followed.run())
    await followed.answered.wait()
    assert not followed.synced.is_set()
    assert followed.problem is not None
    assert followed.problem.text().splitlines() == [
        "pytorchjobs: the cluster serves no pytorchjobs of kubeflow.org/v1  [KindNotServed]"
    ]
    await followed.synced.wait()
    task.cancel()
    await asyncio.wait([task])
    assert followed.problem is None
    assert [problem and problem.reason.code for problem in followed.problems] == ["KindNotServed", None]
    assert max(followed.clock.slept[:9]) == LONGEST_REFUSED * 0.75


async def test_rights_that_are_taken_are_a_problem_until_they_are_given() -> None:
    begun = lines(("ADDED", item("a", 3)), bookmark(7, end=True))
    followed = Followed(begun, status(403, "Forbidden"), begun)
    await followed.play()
    assert [problem and problem.reason.code for problem in followed.problems] == ["ClusterRefused", None]
    assert followed.told == [("ADDED", "a")]


async def test_what_is_not_about_the_kind_makes_no_new_list() -> None:
    """A server that is away, starting, or behind a balancer that answers in its place."""
    begun = lines(("ADDED", item("a", 3)), bookmark(7, end=True))
    away = Unreachable("https://10.0.0.1", "refused", how="silent")
    followed = Followed(begun, HTML, away, status(500, "InternalError"), status(429, ""), *[HTML] * 20)
    assert set(await followed.play()) == {"stream", "watch 7"}
    assert (followed.names(), followed.problems) == (["a"], [])
    # Longer and longer, to an end.
    assert followed.clock.slept[-1] == max(followed.clock.slept) == 30 * 0.75


async def test_a_server_that_was_restored_from_a_copy_is_listed_anew() -> None:
    begun = lines(("ADDED", item("a", 3)), bookmark(70, end=True))
    followed = Followed(begun, lines(bookmark(9)), lines(bookmark(10, end=True)))
    assert await followed.play() == ["stream", "watch 70", "stream", "watch 10"]
    assert followed.names() == []


async def test_watches_that_end_at_once_are_begun_more_and_more_slowly() -> None:
    begun = lines(bookmark(7, end=True))
    followed = Followed(begun, *[b""] * 9)
    await followed.play()
    assert followed.clock.slept == sorted(followed.clock.slept)
    assert len(set(followed.clock.slept)) > 5
