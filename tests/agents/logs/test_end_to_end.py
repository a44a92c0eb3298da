"""Lines are stored once and in order, through rotations, restarts, lost responses and full disks."""

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
from hypothesis import given, strategies as st

from pincompute.agents.logs import node, shipper as shipper_module
from pincompute.agents.logs.follower import Follower
from pincompute.agents.logs.position import Batch, Position, Stream
from pincompute.agents.logs.shipper import Shipper
from pincompute.agents.logs.store_client import PodUnknown
from pincompute.agents.logs.stream_file import StreamFile
from pincompute.agents.store_connection import StoreUnavailable

STREAM = Stream("me", "hello-0", "uid", "hello")
STEPS = st.sampled_from(
    [
        "write",
        "write",
        "write long",
        "rotate",
        "ship",
        "ship",
        "lose a response",
        "new shipper",
        "new store",
        "tear",
        "fill",
    ]
)


class Pipeline:
    """A container's log file, its shipper, and the stream's file in the store; a fake StoreClient for the shipper."""

    def __init__(self, folder: Path) -> None:
        self.printed = folder / "printed" / "0.log"
        self.printed.parent.mkdir()
        self.printed.touch()
        self.stored_file = StreamFile(folder / "kept" / "0.log")
        self.stored_file.path.parent.mkdir()
        self.written: list[str] = []
        self.rotations = 0
        self.lost_responses = 0
        self.full = False
        self.renew_shipper()

    def renew_shipper(self) -> None:
        make = partial(Follower, STREAM, partial(node.rotated_files, self.printed), node.complete_lines, inodes=False)
        self.shipper = Shipper(self, lambda: {STREAM: make}, 0)  # type: ignore[arg-type]

    def fetch_position(self, _: Stream) -> Position:
        return self.stored_file.position

    def send_batch(self, batch: Batch) -> tuple[bool, Position]:
        with full_disk(self.stored_file.path) if self.full else nullcontext():
            try:
                stored = self.stored_file.append(batch, max_bytes=4_000)
            except OSError as error:
                raise StoreUnavailable("full") from error
        if self.lost_responses:
            self.lost_responses -= 1
            raise StoreUnavailable("cut off")
        return stored, self.stored_file.position

    def do(self, step: str) -> None:
        match step:
            case "write" | "write long":
                text = f"line {len(self.written)}" + " and on" * (100 if "long" in step else 0)
                time = f"2026-01-01T00:00:{len(self.written) // 10:02}.{len(self.written) % 10:09}Z"
                with self.printed.open("a") as file:
                    file.write(f"{time} stdout F {text}\n")
                self.written.append(text)
            case "rotate":
                self.rotate()
            case "ship":
                self.ship()
            case "lose a response":
                self.lost_responses += 1
            case "new shipper":
                self.shipper.close()
                self.renew_shipper()
            case "new store":
                self.stored_file = StreamFile(self.stored_file.path)
            case "fill":
                # The disk has space for a part of the next batch.
                self.full = True
                self.ship()
                self.full = False
            case "tear":
                # The machine stopped in the middle of a write.
                with self.stored_file.path.open("ab") as file:
                    file.write(b"2026-01-01T00:00:00Z stdout F torn\n2026-01")
                self.stored_file = StreamFile(self.stored_file.path)

    def rotate(self) -> None:
        """Rotates as the kubelet does, which compresses the previous file."""
        if not self.printed.stat().st_size:
            return
        for former in self.printed.parent.glob("0.log.*"):
            if former.suffix != ".gz":
                Path(f"{former}.gz").write_bytes(gzip.compress(former.read_bytes()))
                former.unlink()
        self.printed.rename(f"{self.printed}.20260101-{self.rotations:06}")
        self.printed.touch()
        self.rotations += 1

    def ship(self) -> None:
        try:
            while self.shipper.ship_round():
                pass
        except StoreUnavailable:
            pass

    def stored(self) -> list[str]:
        return [line.decode().split(" ", 3)[3] for line in self.stored_file.tail()]


def test_drain_waits_until_store_knows_pod(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shipper_module, "UNKNOWN_POD_RETRY_S", 0.01)
    pipeline = Pipeline(tmp_path)
    pipeline.do("write")
    errors = [PodUnknown("unknown pod")] * 2
    fetch_position = pipeline.fetch_position

    def fail_twice(stream: Stream) -> Position:
        if errors:
            raise errors.pop()
        return fetch_position(stream)

    pipeline.fetch_position = fail_twice  # type: ignore[method-assign]
    pipeline.shipper.drain(time.monotonic() + 30)
    pipeline.shipper.close()
    assert pipeline.stored() == pipeline.written


class ShortPod:
    """A container that writes lines, ends, and is deleted with its files, and a store that cannot take them yet."""

    def __init__(self, folder: Path, error: Exception) -> None:
        self.pipeline = Pipeline(folder)
        self.error: Exception | None = error
        make = partial(
            Follower, STREAM, partial(node.rotated_files, self.pipeline.printed), node.complete_lines, inodes=False
        )
        self.shipper = Shipper(self, lambda: {STREAM: make} if self.pipeline.printed.exists() else {}, 0)  # type: ignore[arg-type]

    def fetch_position(self, stream: Stream) -> Position:
        if self.error:
            raise self.error
        return self.pipeline.fetch_position(stream)

    def send_batch(self, batch: Batch) -> tuple[bool, Position]:
        return self.pipeline.send_batch(batch)

    def end(self) -> None:
        self.pipeline.do("write")
        self.pipeline.printed.unlink()


def test_lines_of_pod_that_ends_during_an_outage_are_stored(tmp_path: Path) -> None:
    """A shipper waits up to 15 seconds before it tries an unavailable store again; a pod may not live that long."""
    pod = ShortPod(tmp_path, StoreUnavailable("refused"))
    with pytest.raises(StoreUnavailable):
        pod.shipper.ship_round()
    pod.pipeline.do("write")
    pod.shipper.hold_files()
    pod.end()
    pod.shipper.hold_files()
    pod.error = None
    while pod.shipper.ship_round():
        pass
    assert pod.pipeline.stored() == pod.pipeline.written
    assert len(pod.pipeline.written) == 2
    pod.shipper.close()


def test_shipper_looks_for_files_while_it_waits_for_the_store(tmp_path: Path) -> None:
    pod = ShortPod(tmp_path, StoreUnavailable("refused"))
    pod.pipeline.do("write")
    pod.shipper._wait(0.01)  # noqa: SLF001
    pod.end()
    pod.error = None
    pod.shipper.ship_round()
    assert pod.pipeline.stored() == pod.pipeline.written
    pod.shipper.close()


def test_lines_of_pod_that_ends_before_the_store_knows_it_are_stored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shipper_module, "UNKNOWN_POD_RETRY_S", 0.0)
    pod = ShortPod(tmp_path, PodUnknown("unknown pod"))
    pod.pipeline.do("write")
    pod.shipper.ship_round()
    pod.end()
    pod.shipper.ship_round()
    pod.error = None
    pod.shipper.ship_round()
    assert pod.pipeline.stored() == pod.pipeline.written
    pod.shipper.close()


def test_deleted_files_held_for_the_store_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shipper_module, "MAX_DELETED_STREAMS", 0)
    pod = ShortPod(tmp_path, StoreUnavailable("refused"))
    pod.pipeline.do("write")
    pod.shipper.hold_files()
    pod.end()
    pod.shipper.hold_files()
    assert pod.shipper._followers == {}  # noqa: SLF001


@contextmanager
def full_disk(path: Path) -> Generator[None]:
    """Limits files to this one's size plus 40 bytes: the kernel writes the part that fits, and then fails."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, ((path.stat().st_size if path.exists() else 0) + 40, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@given(st.lists(STEPS, max_size=60))
def test_every_line_is_stored_once_and_in_order(steps: list[str]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        pipeline = Pipeline(Path(folder))
        for step in steps:
            pipeline.do(step)
        pipeline.lost_responses = 0
        pipeline.ship()
        pipeline.shipper.close()
        stored = pipeline.stored()
        # The store rotates its own files, too, and keeps only the newest ones.
        assert stored == pipeline.written[len(pipeline.written) - len(stored) :]
        assert len(stored) >= min(len(pipeline.written), 4)
