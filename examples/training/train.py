"""Fits a line on several machines at once: each has its share of the points, and all go the same step together.

It is told who it is as PyTorch's own programs are: RANK of WORLD_SIZE, and where rank 0 is found.
"""

from __future__ import annotations

import json
import os
import random
import socket
import sys
import time
from typing import TextIO

RANK = int(os.environ.get("RANK", "0"))
WORLD = int(os.environ.get("WORLD_SIZE", "1"))
MASTER = os.environ.get("MASTER_ADDR", "localhost"), int(os.environ.get("MASTER_PORT", "23456"))

STEPS = int(os.environ.get("STEPS", "40"))
RATE = 0.5
POINTS = 6_000
SHARDS = os.environ.get("SHARDS", "").split()
"""Names of the data, one for each rank; without them each rank reads the shard of its number."""
PATIENCE = 60.0
"""Seconds that one waits for another."""

Vector = list[float]


def main() -> None:
    others = meet()
    weights = [0.0, 0.0]
    for step in range(1, STEPS + 1):
        slope, offset, loss = mean(others, share(weights))
        weights = [weights[0] - RATE * slope, weights[1] - RATE * offset]
        if RANK == 0 and (step == 1 or step % 10 == 0):
            print(f"step {step} of {STEPS}: loss {loss:.6f} over {WORLD} machines", flush=True)
    print(f"rank {RANK} of {WORLD}: y = {weights[0]:.2f} x + {weights[1]:.2f}", flush=True)


def share(weights: Vector) -> Vector:
    """The gradient and the loss over this one's points."""
    total = [0.0, 0.0, 0.0]
    points = POINTS // WORLD
    chance = random.Random(shard())  # noqa: S311
    for _ in range(points):
        x = chance.uniform(-1, 1)
        off = weights[0] * x + weights[1] - (3 * x + 2 + chance.gauss(0, 0.1))
        total = [total[0] + 2 * off * x, total[1] + 2 * off, total[2] + off * off]
    return [each / points for each in total]


def shard() -> str:
    if not SHARDS:
        return str(RANK)
    if len(SHARDS) <= RANK:
        sys.exit(f"rank {RANK} has no shard: {len(SHARDS)} for {WORLD} machines")
    return SHARDS[RANK]


def mean(others: list[TextIO], mine: Vector) -> Vector:
    """All-reduce: rank 0 hears all and tells all, so that everyone goes on with the same numbers."""
    if RANK == 0:
        all_ = [mine, *(hear(each) for each in others)]
        agreed = [sum(column) / WORLD for column in zip(*all_, strict=True)]
        for each in others:
            tell(each, agreed)
        return agreed
    tell(others[0], mine)
    return hear(others[0])


def meet() -> list[TextIO]:
    """Rank 0 waits for all others; they wait until it is there."""
    if RANK:
        return [opened(reach())]
    if WORLD == 1:
        return []
    with socket.create_server(("", MASTER[1]), backlog=WORLD) as server:
        server.settimeout(PATIENCE)
        return [opened(server.accept()[0]) for _ in range(WORLD - 1)]


def reach() -> socket.socket:
    end = time.monotonic() + PATIENCE
    while True:
        try:
            # The name may still lead to the master of an earlier attempt, which never answers: then look it up again.
            return socket.create_connection(MASTER, timeout=2.0)
        except OSError as error:
            if time.monotonic() > end:
                sys.exit(f"rank 0 is not found at {MASTER[0]}:{MASTER[1]}: {error}")
            time.sleep(0.2)


def opened(connection: socket.socket) -> TextIO:
    connection.settimeout(PATIENCE)
    return connection.makefile("rw")


def tell(other: TextIO, numbers: Vector) -> None:
    other.write(json.dumps(numbers) + "\n")
    other.flush()


def hear(other: TextIO) -> Vector:
    line = other.readline()
    if not line:
        raise ConnectionError
    numbers: Vector = json.loads(line)
    return numbers


if __name__ == "__main__":
    try:
        main()
    except ConnectionError:
        sys.exit(f"rank {RANK}: connection closed by a peer")
