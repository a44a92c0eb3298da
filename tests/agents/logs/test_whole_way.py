"""What is written is stored, once and in order, whatever is turned over, restarted or cut off on the way."""

from __future__ import annotations

import gzip
import resource
import tempfile
import time
from collections.abc import Generator
from contextlib import contextmanager, nullcontext
from functools import partial
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pincompute.agents.logs import node, ship
from pincompute.agents.logs.courier import Away, Later
from pincompute.agents.logs.follow import Follower
from pincompute.agents.logs.kept import Kept
from pincompute.agents.logs.place import Batch, Position, Stream
from pincompute.agents.logs.ship import Shipper

STREAM = Stream("me", "hello-0", "uid", "hello")
STEPS = st.sampled_from(
    [
        "write",
        "write",
        "write long",
        "turn over",
        "ship",
        "ship",
        "lose an answer",
        "new shipper",
        "new store",
        "tear",
        "fill",
    ]
)


class Way:
    """A container's file, its shipper, and its stream in the store."""

    def __init__(self, folder: Path) -> None:
        self.printed = folder / "printed" / "0.log"
        self.printed.parent.mkdir()
        self.printed.touch()
        self.kept = Kept(folder / "kept" / "0.log")
        self.kept.path.parent.mkdir()
        self.written: list[str] = []
        self.turned = 0
        self.lost_answers = 0
        self.full = False
        self.renew_shipper()

    def renew_shipper(self) -> None:
        make = partial(Follower, STREAM, partial(node.files, self.printed), node.whole, inodes=False)
        self.shipper = Shipper(self, lambda: {STREAM: make}, 0)  # type: ignore[arg-type]

    def position(self, _: Stream) -> Position:
        return self.kept.position

    def bring(self, batch: Batch) -> tuple[bool, Position]:
        with filled(self.kept.path) if self.full else nullcontext():
            try:
                taken = self.kept.take(batch, largest=4_000)
            except OSError as error:
                raise Away("full") from error
        if self.lost_answers:
            self.lost_answers -= 1
            raise Away("cut off")
        return taken, self.kept.position

    def do(self, step: str) -> None:
        match step:
            case "write" | "write long":
                text = f"line {len(self.written)}" + " and on" * (100 if "long" in step else 0)
                time = f"2026-01-01T00:00:{len(self.written) // 10:02}.{len(self.written) % 10:09}Z"
                with self.printed.open("a") as file:
                    file.write(f"{time} stdout F {text}\n")
                self.written.append(text)
            case "turn over":
                self.turn_over()
            case "ship":
                self.ship()
            case "lose an answer":
                self.lost_answers += 1
            case "new shipper":
                self.shipper.close()
                self.renew_shipper()
            case "new store":
                self.kept = Kept(self.kept.path)
            case "fill":
                # Of the next batch there is room for a part.
                self.full = True
                self.ship()
                self.full = False
            case "tear":
                # The machine stopped in the midst of a write.
                with self.kept.path.open("ab") as file:
                    file.write(b"2026-01-01T00:00:00Z stdout F torn\n2026-01")
                self.kept = Kept(self.kept.path)

    def turn_over(self) -> None:
        """As the kubelet does it: the one before is packed."""
        if not self.printed.stat().st_size:
            return
        for former in self.printed.parent.glob("0.log.*"):
            if former.suffix != ".gz":
                Path(f"{former}.gz").write_bytes(gzip.compress(former.read_bytes()))
                former.unlink()
        self.printed.rename(f"{self.printed}.20260101-{self.turned:06}")
        self.printed.touch()
        self.turned += 1

    def ship(self) -> None:
        try:
            while self.shipper.round():
                pass
        except Away:
            pass

    def stored(self) -> list[str]:
        return [line.decode().split(" ", 3)[3] for line in self.kept.last()]


def test_who_ends_before_the_store_has_heard_of_it_waits_for_that(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ship, "AGAIN", 0.01)
    way = Way(tmp_path)
    way.do("write")
    unheard = [Later("this pod is not known yet")] * 2
    position = way.position

    def asked(stream: Stream) -> Position:
        if unheard:
            raise unheard.pop()
        return position(stream)

    way.position = asked  # type: ignore[method-assign]
    way.shipper.finish(time.monotonic() + 30)
    way.shipper.close()
    assert way.stored() == way.written


@contextmanager
def filled(path: Path) -> Generator[None]:
    """No file can be longer than that one is and 40 bytes; the kernel writes what fits, and then refuses."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, ((path.stat().st_size if path.exists() else 0) + 40, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@given(st.lists(STEPS, max_size=60))
def test_every_line_is_stored_once_and_in_order(steps: list[str]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        way = Way(Path(folder))
        for step in steps:
            way.do(step)
        way.lost_answers = 0
        way.ship()
        way.shipper.close()
        stored = way.stored()
        # The store's own files are turned over as well: only the newest are kept.
        assert stored == way.written[len(way.written) - len(stored) :]
        assert len(stored) >= min(len(way.written), 4)
