"""A daemon comes to its nodes wave by wave: whole rollouts, played to their end."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from math import ceil
from typing import NamedTuple

from hypothesis import given
from hypothesis import strategies as st

from pincompute.api.daemon import Rollout
from pincompute.api.names import TEMPLATE
from pincompute.planning.node_waves import allowed, turn
from pincompute.planning.snapshot import Container, OwnedMetadata, Placed, Pod, PodCondition, PodStatus, Running, State

NOW = datetime(2026, 1, 31, 12, tzinfo=UTC)


class Node(NamedTuple):
    """One that is to have it; `newest` is nothing while the next copy is not made."""

    name: str
    newest: bool | None
    ready: bool = True
    since: datetime = NOW - timedelta(days=1)

    def pod(self) -> Pod:
        return Pod(
            metadata=OwnedMetadata(name=f"exporter-{self.name}", labels={TEMPLATE: "new" if self.newest else "old"}),
            spec=Placed(node_name=self.name),
            status=PodStatus(
                phase="Running",
                conditions=[PodCondition(type="Ready", status=str(self.ready))],
                container_statuses=[Container(name="exporter", state=State(running=Running(started_at=self.since)))],
            ),
        )


def played(rollout: Rollout, nodes: list[Node], now: datetime = NOW) -> Iterator[tuple[list[Node], datetime]]:
    """What happens after each pass: what was named is gone, then made anew, then ready."""
    while True:
        current = tuple(each.pod() for each in nodes if each.newest)
        former = tuple(each.pod() for each in nodes if each.newest is False)
        answer = turn(rollout, len(nodes), current, former, now)
        named = {each.spec.node_name for each in answer.next}
        gone = [each._replace(newest=None, ready=False) if each.name in named else each for each in nodes]
        yield gone, now
        if not former:
            return
        assert named or answer.look_again, answer.waits
        nodes = [each._replace(newest=True, ready=True, since=now) if each.newest is None else each for each in gone]
        now += timedelta(seconds=answer.look_again or 1)


rollouts = st.builds(
    Rollout,
    waves=st.sets(st.integers(1, 99), max_size=4).map(lambda each: [*sorted(each), 100]),
    unavailable=st.one_of(st.integers(1, 9), st.integers(1, 100).map(lambda each: f"{each}%")),
    pause_seconds=st.integers(0, 600),
)
fleets = st.lists(st.booleans(), min_size=1, max_size=40).map(
    lambda ready: [Node(f"node-{number}", newest=False, ready=each) for number, each in enumerate(ready)]
)


@given(rollouts, fleets)
def test_it_ends_and_no_more_are_away_than_may_be(rollout: Rollout, nodes: list[Node]) -> None:
    silent = {each.name for each in nodes if not each.ready}
    after = nodes
    for after, _ in played(rollout, nodes):
        away = {each.name for each in after if not each.ready}
        assert len(away - silent) <= allowed(rollout, len(nodes))
    assert all(each.newest for each in after)


@given(rollouts, fleets)
def test_no_wave_begins_before_the_one_before_has_proved_itself(rollout: Rollout, nodes: list[Node]) -> None:
    goals = [ceil(len(nodes) * percent / 100) for percent in rollout.waves]
    for after, now in played(rollout, nodes):
        begun = sum(each.newest is not False for each in after)
        pause = timedelta(seconds=rollout.pause_seconds)
        proved = sum(each.newest is True and now - each.since >= pause for each in after)
        reached = next((goal for goal in goals if proved < goal), goals[-1])
        assert begun <= reached


@given(fleets)
def test_a_copy_that_never_answers_holds_up_what_comes_after_it(nodes: list[Node]) -> None:
    rollout = Rollout(waves=[1, 100], unavailable="100%")
    first = nodes[0]._replace(newest=True, ready=False)
    answer = turn(rollout, len(nodes), (first.pod(),), tuple(each.pod() for each in nodes[1:]), NOW)
    assert answer.next == ()


def test_the_order_of_the_nodes_does_not_matter() -> None:
    nodes = [Node(f"node-{number}", newest=False) for number in range(20)]
    rollout = Rollout(waves=[100], unavailable=3)
    one = turn(rollout, 20, (), tuple(each.pod() for each in nodes), NOW)
    other = turn(rollout, 20, (), tuple(each.pod() for each in reversed(nodes)), NOW)
    assert one == other
    assert len(one.next) == 3


def test_a_wave_is_watched_to_the_last_second() -> None:
    rollout = Rollout(waves=[50, 100], pause_seconds=60)
    former = (Node("b", newest=False).pod(),)
    young = Node("a", newest=True, since=NOW - timedelta(seconds=59))
    answer = turn(rollout, 2, (young.pod(),), former, NOW)
    assert (answer.next, answer.wave, answer.look_again) == ((), 1, 1.0)
    old = young._replace(since=NOW - timedelta(seconds=60))
    assert turn(rollout, 2, (old.pod(),), former, NOW).next == former
