"""The example training converges with several workers, also outside containers."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from pincompute.engine.ports import choose_ports

PROGRAM = Path(__file__).parents[2] / "examples/training/train.py"


TIMEOUT_S = 120


def start(rank: int, world: int, port: int, **environment: str) -> subprocess.Popen[str]:
    place = {"RANK": str(rank), "WORLD_SIZE": str(world), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    return subprocess.Popen([sys.executable, PROGRAM], env={**os.environ, **place, **environment},
                            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)  # fmt: skip


@pytest.mark.parametrize("world", [1, 3])
def test_workers_converge_to_the_same_line(world: int):
    port = choose_ports({}, None)["registry"]
    # Rank 0 starts last; the others wait for it.
    all_ = [start(rank, world, port) for rank in reversed(range(world))]
    outputs = [each.communicate(timeout=TIMEOUT_S)[0].splitlines() for each in all_]
    assert [each.returncode for each in all_] == [0] * world
    assert [each[-1].partition(": ")[2] for each in outputs] == ["y = 3.00 x + 2.00"] * world
    losses = [float(line.split("loss ")[1].split()[0]) for line in outputs[-1][:-1]]
    assert losses == sorted(losses, reverse=True)
    assert losses[0] > 4
    assert losses[-1] < 0.02


def test_worker_without_a_shard_fails_and_the_others_lose_it():
    port = choose_ports({}, None)["registry"]
    first, other = (start(rank, 2, port, SHARDS="north") for rank in range(2))
    assert other.communicate(timeout=TIMEOUT_S)[0] == "rank 1 has no shard: 1 for 2 machines\n"
    assert first.communicate(timeout=TIMEOUT_S)[0].splitlines()[-1] == "rank 0: connection closed by a peer"
    assert (first.returncode, other.returncode) == (1, 1)


def test_worker_fails_if_another_one_ends():
    port = choose_ports({}, None)["registry"]
    first, other = start(0, 2, port), start(1, 2, port, STEPS="2")
    assert other.communicate(timeout=TIMEOUT_S)[0]
    assert first.communicate(timeout=TIMEOUT_S)[0].splitlines()[-1] == "rank 0: connection closed by a peer"
    assert first.returncode == 1
