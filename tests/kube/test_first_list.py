"""First list of an informer, by a watch with initial events or by pages, and its problems and retries."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest

from pincompute.base.problem import Problem
from pincompute.kube.errors import ApiError, Unreachable, parse_error
from pincompute.kube.informer import MAX_BACKOFF_REFUSED_S, Informer
from pincompute.kube.resource import PYTORCH_JOBS
from pincompute.kube.watch import Event
from scripted_transport import InstantClock, ScriptedTransport, client_over


class Meta(msgspec.Struct, rename="camel"):
    name: str = ""
    labels: dict[str, str] = {}


class Job(msgspec.Struct):
    metadata: Meta


def item(name: str, revision: int, color: str = "red") -> dict[str, Any]:
    return {"metadata": {"name": name, "namespace": "me", "resourceVersion": str(revision), "labels": {"c": color}}}


def watch_lines(*events: tuple[str, dict[str, Any]]) -> bytes:
    return b"\n".join(msgspec.json.encode({"type": type_, "object": each}) for type_, each in events)


def bookmark(revision: int, *, end: bool = False) -> tuple[str, dict[str, Any]]:
    marks = {"k8s.io/initial-events-end": "true"} if end else {}
    return "BOOKMARK", {"metadata": {"resourceVersion": str(revision), "annotations": marks}}


def page(revision: int, *items: dict[str, Any], token: str = "") -> bytes:
    return msgspec.json.encode({"metadata": {"resourceVersion": str(revision), "continue": token}, "items": items})


def status(code: int, reason: str) -> ApiError:
    return parse_error(msgspec.json.encode({"kind": "Status", "code": code, "reason": reason, "message": "no"}))


GONE = status(410, "Expired")
REFUSED = status(422, "Invalid")
HTML = parse_error(b"<h1>Bad Gateway</h1>", status=502)


class RecordingInformer(Informer[Job]):
    """Informer over a scripted transport that records its events and problems."""

    def __init__(self, *answers: bytes | ApiError, client: Any = None) -> None:
        self.transport = ScriptedTransport(*answers)
        self.clock = InstantClock()
        self.events: list[tuple[str, str]] = []
        self.objects: list[Job] = []
        self.problems: list[Problem | None] = []
        super().__init__(
            client or client_over(self.transport, self.clock),
            PYTORCH_JOBS,
            type=Job,
            on_change=self._record,
            on_problem=self.problems.append,
        )

    def _record(self, event: Event[Job]) -> None:
        self.events.append((event.type, event.object.metadata.name))
        self.objects.append(event.object)

    async def run_script(self) -> list[str]:
        task = asyncio.create_task(self.run())
        async with asyncio.timeout(60):
            await self.transport.exhausted.wait()
        task.cancel()
        await asyncio.wait([task])
        return [request_kind(request.query) for request in self.transport.requests]

    def names(self) -> list[str]:
        return [name for _, name in self.items]


def request_kind(query: Any) -> str:
    if query.get("sendInitialEvents"):
        return "stream"
    return f"watch {query['resourceVersion']}" if query.get("watch") else "page"


async def test_watch_list_yields_existing_objects_and_changes() -> None:
    initial = ("ADDED", item("a", 3)), ("ADDED", item("b", 4)), bookmark(7, end=True)
    informer = RecordingInformer(watch_lines(*initial, ("DELETED", item("a", 8)), bookmark(9)))
    assert await informer.run_script() == ["stream", "watch 9"]
    assert informer.events == [("ADDED", "a"), ("ADDED", "b"), ("DELETED", "a")]
    assert informer.synced.is_set()
    assert dict(informer.transport.requests[0].query) == {
        "watch": "true",
        "timeoutSeconds": "240",
        "allowWatchBookmarks": "true",
        "sendInitialEvents": "true",
        "resourceVersionMatch": "NotOlderThan",
    }


async def test_not_synced_before_end_of_initial_events() -> None:
    informer = RecordingInformer(watch_lines(("ADDED", item("a", 3))))
    await informer.run_script()
    assert (informer.names(), informer.synced.is_set(), informer.resource_version) == (["a"], False, 0)


@pytest.mark.parametrize(
    "answer", [REFUSED, status(400, "BadRequest"), watch_lines(("ADDED", item("a", 3)), bookmark(5))]
)  # fmt: skip
async def test_falls_back_to_pages_and_remembers_it(answer: Any) -> None:
    first = RecordingInformer(answer, page(6, item("a", 3), token="next"), page(6, item("b", 4)))
    assert await first.run_script() == ["stream", "page", "page", "watch 6"]
    assert (first.names(), first.clock.slept, first.problems) == (["a", "b"], [], [])
    second = RecordingInformer(client=first._client)  # noqa: SLF001
    second.transport = first.transport
    first.transport.exhausted.clear()
    assert await second.run_script() == ["stream", "page", "page", "watch 6", "page"]


async def test_relist_reports_only_differences() -> None:
    first_list = watch_lines(
        ("ADDED", item("a", 3)), ("ADDED", item("b", 4)), ("ADDED", item("c", 5)), bookmark(7, end=True)
    )
    second_list = watch_lines(("ADDED", item("a", 20)), ("ADDED", item("c", 21, "blue")), bookmark(22, end=True))
    informer = RecordingInformer(first_list, GONE, second_list)
    assert await informer.run_script() == ["stream", "watch 7", "stream", "watch 22"]
    assert informer.events[3:] == [("MODIFIED", "c"), ("DELETED", "b")]
    # An unchanged object keeps its identity: the new one is dropped at once.
    assert informer.items["me", "a"] is informer.objects[0]


async def test_relist_after_expired_page() -> None:
    informer = RecordingInformer(REFUSED, page(6, item("a", 3), token="next"), GONE, page(9, item("b", 8)))
    assert await informer.run_script() == ["stream", "page", "page", "page", "watch 9"]
    assert informer.events == [("ADDED", "a"), ("ADDED", "b"), ("DELETED", "a")]


async def test_deletion_during_initial_events_is_reported_once() -> None:
    first_list = watch_lines(("ADDED", item("a", 3)), bookmark(7, end=True))
    second_list = watch_lines(("ADDED", item("a", 3)), ("DELETED", item("a", 9)), bookmark(9, end=True))
    informer = RecordingInformer(first_list, GONE, second_list)
    await informer.run_script()
    assert informer.events == [("ADDED", "a"), ("DELETED", "a")]


async def test_unserved_kind_is_problem_until_served() -> None:
    unknown = parse_error(b"404 page not found", status=404)
    informer = RecordingInformer(*[unknown] * 9, watch_lines(("ADDED", item("a", 3)), bookmark(7, end=True)))
    task = asyncio.create_task(informer.run())
    await informer.responded.wait()
    assert not informer.synced.is_set()
    assert informer.problem is not None
    assert informer.problem.text().splitlines() == [
        "pytorchjobs: the cluster does not serve pytorchjobs of kubeflow.org/v1  [KindNotServed]"
    ]
    await informer.synced.wait()
    task.cancel()
    await asyncio.wait([task])
    assert informer.problem is None
    assert [problem and problem.reason.code for problem in informer.problems] == ["KindNotServed", None]
    assert max(informer.clock.slept[:9]) == MAX_BACKOFF_REFUSED_S * 0.75


async def test_revoked_access_is_problem_until_granted() -> None:
    first_list = watch_lines(("ADDED", item("a", 3)), bookmark(7, end=True))
    informer = RecordingInformer(first_list, status(403, "Forbidden"), first_list)
    await informer.run_script()
    assert [problem and problem.reason.code for problem in informer.problems] == ["ClusterRefused", None]
    assert informer.events == [("ADDED", "a")]


async def test_transient_errors_do_not_relist() -> None:
    """Covers an unreachable or starting server, and a load balancer that responds in its place."""
    first_list = watch_lines(("ADDED", item("a", 3)), bookmark(7, end=True))
    unreachable = Unreachable("https://10.0.0.1", "refused", how="silent")
    informer = RecordingInformer(
        first_list, HTML, unreachable, status(500, "InternalError"), status(429, ""), *[HTML] * 20
    )
    assert set(await informer.run_script()) == {"stream", "watch 7"}
    assert (informer.names(), informer.problems) == (["a"], [])
    # The backoff grows up to its maximum.
    assert informer.clock.slept[-1] == max(informer.clock.slept) == 30 * 0.75


async def test_relists_after_etcd_restore() -> None:
    first_list = watch_lines(("ADDED", item("a", 3)), bookmark(70, end=True))
    informer = RecordingInformer(first_list, watch_lines(bookmark(9)), watch_lines(bookmark(10, end=True)))
    assert await informer.run_script() == ["stream", "watch 70", "stream", "watch 10"]
    assert informer.names() == []


async def test_backs_off_when_watches_end_at_once() -> None:
    first_list = watch_lines(bookmark(7, end=True))
    informer = RecordingInformer(first_list, *[b""] * 9)
    await informer.run_script()
    assert informer.clock.slept == sorted(informer.clock.slept)
    assert len(set(informer.clock.slept)) > 5
