"""The stream of changes: order, filters, resumption and slow readers."""

from __future__ import annotations

import msgspec
from hypothesis import given, strategies as st

from pincompute.api.insight import ChangeFrame
from pincompute.insight.change_stream import MAX_KEPT_EVENTS, MAX_QUEUED_EVENTS, ChangeStream, Subscription


async def taken_numbers(subscription: Subscription) -> list[int | str]:
    frames = [msgspec.json.decode(each, type=ChangeFrame) for each in await subscription.take() or ()]
    return [each.event if each.event == "reload" else msgspec.json.decode(each.data) for each in frames]


def publish_numbers(stream: ChangeStream, *numbers: int, project: str = "ads") -> None:
    for number in numbers:
        stream.send_change("workloads", project, number)


async def test_each_reader_gets_the_events_of_its_projects_in_order() -> None:
    stream = ChangeStream("e")
    with stream.subscribe(["ads"], "") as ads, stream.subscribe(None, "") as everything, stream.subscribe([], ""):
        publish_numbers(stream, 1, 2)
        publish_numbers(stream, 3, project="search")
        publish_numbers(stream, 4, project="")
        publish_numbers(stream, 5)
        assert await taken_numbers(ads) == [1, 2, 5]
        assert await taken_numbers(everything) == [1, 2, 3, 4, 5]
        assert stream.readers == 3
    assert stream.readers == 0


async def test_reader_continues_after_its_last_event() -> None:
    stream = ChangeStream("e")
    publish_numbers(stream, 1, 2)
    seen = stream.position
    publish_numbers(stream, 3, project="search")
    publish_numbers(stream, 4)
    with stream.subscribe(["ads"], seen) as subscription:
        publish_numbers(stream, 5)
        assert await taken_numbers(subscription) == [4, 5]


async def test_reader_is_told_to_reload_from_a_position_that_is_not_kept() -> None:
    stream = ChangeStream("e")
    first = stream.position
    publish_numbers(stream, *range(MAX_KEPT_EVENTS))
    with stream.subscribe(None, first) as subscription:
        # The queue of a reader is shorter than what is kept.
        assert await subscription.take() is None
    publish_numbers(stream, 0)
    for unknown in (first, "other-1", "e-99999999999", "e-" + "9" * 50, "e-x", "e", "-", "e--1", "e-²"):
        with stream.subscribe(None, unknown) as subscription:
            assert await taken_numbers(subscription) == ["reload"], unknown


async def test_slow_reader_loses_its_queue_and_delays_nobody() -> None:
    stream = ChangeStream("e")
    with stream.subscribe(None, "") as slow, stream.subscribe(None, "") as quick:
        for number in range(MAX_QUEUED_EVENTS + 1):
            publish_numbers(stream, number)
            assert await taken_numbers(quick) == [number]
        assert await slow.take() is None


@given(st.lists(st.sampled_from(["ads", "search", "publish", "leave", "come back"]), max_size=60))
async def test_a_reader_that_comes_and_goes_misses_nothing(steps: list[str]) -> None:
    stream, position, expected, received = ChangeStream("e"), "e-0", list[int](), list[int | str]()
    subscription = None
    manager = None
    for number, step in enumerate(steps):
        if step in {"ads", "search"}:
            publish_numbers(stream, number, project=step)
            expected += [number] if step == "ads" else []
            continue
        if manager is None:
            manager = stream.subscribe(["ads"], position)
            subscription = manager.__enter__()
        if step == "leave" and subscription:
            if len(received) < len(expected):
                received += await taken_numbers(subscription)
            position = stream.position
            manager.__exit__(None, None, None)
            manager = None
    if manager is not None and subscription is not None and len(received) < len(expected):
        received += await taken_numbers(subscription)
        manager.__exit__(None, None, None)
    elif manager is None and len(received) < len(expected):
        with stream.subscribe(["ads"], position) as late:
            received += await taken_numbers(late)
    assert received == expected
