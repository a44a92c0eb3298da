"""Keeps files of endpoints up to date: `python -m pincompute.agents.traffic.sidecar FOLDER REGISTRAR`.

It runs in every pod with `endpoints` and therefore imports the standard library only. The serversets are in the
variable ENDPOINTS. The name of this module is part of runtime parts that are already installed.
"""

from __future__ import annotations

import json
import os
import random
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from pincompute.agents.plain_log import write_log_line
from pincompute.agents.store_connection import IdentityCredentials, StoreConnection, StoreUnavailable

POLL_S = 30
"""Time after which the registrar answers without a change."""
TIMEOUT_S = 60.0
RETRY_S = 1.0
MAX_RETRY_S = 10.0
MAX_ANSWER_BYTES = 16 << 20
START_TIMEOUT_S = 10.0
"""The workload starts after this time also without a registrar: then it has no files, or those of the last time."""
STARTED = ".started"
"""File that lets the other containers start."""


class Files:
    """The files PROJECT/WORKLOAD in a folder, each replaced as a whole."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def apply(self, sets: Mapping[str, Mapping[str, Any]]) -> list[str]:
        """Writes what has changed, and removes what may not be read. Returns a line for each change."""
        return [line for name, each in sorted(sets.items()) if (line := self._apply(name, each))]

    def _apply(self, name: str, answer: Mapping[str, Any]) -> str:
        path = self._folder / name
        text, problem = answer["text"], answer["problem"]
        if problem:
            path.unlink(missing_ok=True)
            return problem
        if text is None or (path.exists() and path.read_text() == text):
            # Unknown to the registrar, for example while ZooKeeper is down: the last known addresses stay.
            return ""
        path.parent.mkdir(parents=True, exist_ok=True)
        new = self._folder / ".new"
        new.write_text(text)
        new.replace(path)
        return f"{name}: {text.count(chr(10))} addresses"

    def mark_started(self) -> None:
        (self._folder / STARTED).touch()


class RegistrarClient:
    """Client with one connection, on which it waits for the next change."""

    def __init__(self, address: str, credentials: IdentityCredentials, names: list[str]) -> None:
        self._connection = StoreConnection(address, credentials, TIMEOUT_S, MAX_ANSWER_BYTES)
        self._names = names
        self._version = ""

    def next_sets(self, wait_s: int) -> Mapping[str, Mapping[str, Any]]:
        """All serversets, as soon as one of them differs from the last answer, or after this time."""
        query = urlencode([*(("set", each) for each in self._names), ("since", self._version), ("wait", wait_s)])
        status, _, body = self._connection.send("GET", f"/v1/endpoints?{query}")
        if status != 200:
            raise StoreUnavailable(f"{status} {body[:200].decode(errors='replace')}")
        try:
            answer = json.loads(body)
            sets = {name: answer["sets"][name] for name in self._names}
            self._version = str(answer["version"])
        except (ValueError, KeyError, TypeError) as error:
            self.close()
            raise StoreUnavailable(str(error) or type(error).__name__) from error
        return sets

    def close(self) -> None:
        self._connection.close()


def log_line(event: str, **fields: object) -> None:
    write_log_line("traffic", event, fields)


def run_once(client: RegistrarClient, files: Files, wait_s: int) -> tuple[bool, bool]:
    """Waits for the next answer and applies it. Returns whether there was one, and whether it has all addresses."""
    try:
        sets = client.next_sets(wait_s)
        for change in files.apply(sets):
            log_line("endpoints changed", about=change)
    except (StoreUnavailable, OSError) as error:
        log_line("endpoints not updated", why=str(error))
        return False, False
    return True, all(each["problem"] or each["text"] is not None for each in sets.values())


def main() -> None:
    folder, address = sys.argv[1:]
    files = Files(Path(folder))
    credentials = IdentityCredentials(Path(os.environ.get("IDENTITY_FOLDER", "/run/identity")), "registrar")
    client = RegistrarClient(address, credentials, os.environ["ENDPOINTS"].split())
    deadline, started, failures = time.monotonic() + START_TIMEOUT_S, False, 0
    while True:
        answered, complete = run_once(client, files, POLL_S if started else 1)
        if not started and (complete or time.monotonic() > deadline):
            files.mark_started()
            started = True
        failures = 0 if answered else failures + 1
        if failures:
            # Spreads the pods of a node; not security-relevant.
            jitter = random.uniform(0.5, 1)  # noqa: S311
            time.sleep(min(MAX_RETRY_S, RETRY_S * 2 ** min(failures - 1, 4)) * jitter)


if __name__ == "__main__":
    main()
