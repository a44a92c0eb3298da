"""Rollouts of a daemon wave by wave, simulated from start to end."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from math import ceil
from typing import NamedTuple

from hypothesis import given, strategies as st

from pincompute.api.daemon import Rollout
from pincompute.api.names import TEMPLATE_HASH_LABEL
from pincompute.planning.observed_pods import (
    ContainerState,
    ContainerStatus,
    OwnedMetadata,
    Pod,
    PodCondition,
    PodSpec,
    PodStatus,
    Running,
)
from pincompute.planning.rollout.daemon_waves import max_unavailable_nodes, next_daemon_wave

NOW = datetime(2026, 1, 31, 12, tzinfo=UTC)


class Node(NamedTuple):
    """A node that should run the daemon; `newest` is None while it has no pod."""

    name: str
    newest: bool | None
    ready: bool = True
    since: datetime = NOW - timedelta(days=1)

    def pod(self) -> Pod:
        return Pod(
            metadata=OwnedMetadata(
                name=f"exporter-{self.name}", labels={TEMPLATE_HASH_LABEL: "new" if self.newest else "old"}
            ),
            spec=PodSpec(node_name=self.name),
            status=PodStatus(
                phase="Running",
                conditions=(PodCondition(type="Ready", status=str(self.ready)),),
                container_statuses=(
                    ContainerStatus(name="exporter", state=ContainerState(running=Running(started_at=self.since))),
                ),
            ),
        )


def simulate_rollout(rollout: Rollout, nodes: list[Node], now: datetime = NOW) -> Iterator[tuple[list[Node], datetime]]:
    """Simulate a rollout: after each pass the chosen pods are deleted, then recreated, then ready."""
    while True:
        current = tuple(each.pod() for each in nodes if each.newest)
        former = tuple(each.pod() for each in nodes if each.newest is False)
        wave = next_daemon_wave(rollout, len(nodes), current, former, now)
        chosen = {each.spec.node_name for each in wave.pods_to_replace}
        without = [each._replace(newest=None, ready=False) if each.name in chosen else each for each in nodes]
        yield without, now
        if not former:
            return
        assert chosen or wave.recheck_after_s, wave.waits_for
        nodes = [each._replace(newest=True, ready=True, since=now) if each.newest is None else each for each in without]
        now += timedelta(seconds=wave.recheck_after_s or 1)


rollouts = st.builds(
    Rollout,
    waves=st.sets(st.integers(1, 99), max_size=4).map(lambda each: [*sorted(each), 100]),
    unavailable=st.one_of(st.integers(1, 9), st.integers(1, 100).map(lambda each: f"{each}%")),
    pause_seconds=st.integers(0, 600),
)
node_lists = st.lists(st.booleans(), min_size=1, max_size=40).map(
    lambda ready: [Node(f"node-{number}", newest=False, ready=each) for number, each in enumerate(ready)]
)


@given(rollouts, node_lists)
def test_rollout_ends_within_the_unavailability_limit(rollout: Rollout, nodes: list[Node]) -> None:
    not_ready_before = {each.name for each in nodes if not each.ready}
    after = nodes
    for after, _ in simulate_rollout(rollout, nodes):
        not_ready = {each.name for each in after if not each.ready}
        assert len(not_ready - not_ready_before) <= max_unavailable_nodes(rollout, len(nodes))
    assert all(each.newest for each in after)


@given(rollouts, node_lists)
def test_wave_starts_only_after_the_pause_of_the_former_one(rollout: Rollout, nodes: list[Node]) -> None:
    goals = [ceil(len(nodes) * percent / 100) for percent in rollout.waves]
    for after, now in simulate_rollout(rollout, nodes):
        begun = sum(each.newest is not False for each in after)
        pause = timedelta(seconds=rollout.pause_seconds)
        proven = sum(each.newest is True and now - each.since >= pause for each in after)
        reached = next((goal for goal in goals if proven < goal), goals[-1])
        assert begun <= reached


@given(node_lists)
def test_pod_that_never_becomes_ready_halts_the_rollout(nodes: list[Node]) -> None:
    rollout = Rollout(waves=[1, 100], unavailable="100%")
    first = nodes[0]._replace(newest=True, ready=False)
    wave = next_daemon_wave(rollout, len(nodes), (first.pod(),), tuple(each.pod() for each in nodes[1:]), NOW)
    assert wave.pods_to_replace == ()


def test_order_of_nodes_does_not_matter() -> None:
    nodes = [Node(f"node-{number}", newest=False) for number in range(20)]
    rollout = Rollout(waves=[100], unavailable=3)
    one = next_daemon_wave(rollout, 20, (), tuple(each.pod() for each in nodes), NOW)
    other = next_daemon_wave(rollout, 20, (), tuple(each.pod() for each in reversed(nodes)), NOW)
    assert one == other
    assert len(one.pods_to_replace) == 3


def test_wave_is_observed_for_the_whole_pause() -> None:
    rollout = Rollout(waves=[50, 100], pause_seconds=60)
    former = (Node("b", newest=False).pod(),)
    young = Node("a", newest=True, since=NOW - timedelta(seconds=59))
    answer = next_daemon_wave(rollout, 2, (young.pod(),), former, NOW)
    assert (answer.pods_to_replace, answer.number, answer.recheck_after_s) == ((), 1, 1.0)
    old = young._replace(since=NOW - timedelta(seconds=60))
    assert next_daemon_wave(rollout, 2, (old.pod(),), former, NOW).pods_to_replace == former
