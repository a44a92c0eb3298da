"""Keeps a pod's secrets as files: `python -m pincompute.agents.secrets.agent FOLDER STORE`.

It runs as a sidecar in every pod that names secrets, and starts before the application. It imports the standard library
only. The name of this module is part of runtime parts that are already installed.

While the store is down or refuses, the files stay as they are: a running application is not disturbed. A pod whose
secrets are not complete waits; so that its status says why, the process ends once with the reason as its last line.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import NamedTuple

from pincompute.agents.secrets.folder import SecretFolder
from pincompute.agents.secrets.store_client import Refusal, SecretClient, SecretRefused
from pincompute.agents.store_connection import IdentityCredentials, StoreConnection, StoreUnavailable

RETRY_S = 2.0
REPORT_AFTER_S = 10.0
"""How long secrets may be missing before the process ends, to report why."""
STORE_NAME = "secret-store"
_UNAVAILABLE = "SecretsUnavailable"
"""Code of the reason. Its module would double the memory of this process."""


class Times(NamedTuple):
    """Time, as tests replace it."""

    monotonic: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep
    now: Callable[[], datetime] = partial(datetime.now, UTC)


class Missing(NamedTuple):
    """Why the secrets of the pod are not complete."""

    refusal: Refusal
    since: str

    def line(self) -> str:
        """The last line of the process, which `pin why` reads: reason, text, and the next command."""
        next_ = f" next: {self.refusal.next}" if self.refusal.next else ""
        return f"{self.refusal.reason}: {self.refusal.what}; since {self.since}{next_}"


class Agent:
    """One pass after the other; `run` ends only to report why secrets are missing."""

    def __init__(
        self, client: SecretClient, folder: SecretFolder, names: list[str], times: Times | None = None
    ) -> None:
        self._client = client
        self._folder = folder
        self._names = names
        self._times = times or Times()
        self._digest = ""
        self._logged = ""

    def run(self) -> str:
        """Works until secrets have been missing for too long; returns the reason."""
        started = self._times.monotonic()
        while True:
            missing = self.step()
            if missing is None:
                continue
            line = missing.line()
            # Only once for each reason: the kubelet waits longer after each end of the process.
            if self._times.monotonic() - started >= REPORT_AFTER_S and self._folder.report(missing.refusal.reason):
                return line

    def step(self) -> Missing | None:
        """Waits for a change of the secrets, and writes it. Returns why secrets are missing."""
        try:
            versions = self._client.fetch_versions(self._names, self._digest)
            refused = self._write(versions.secrets)
        except StoreUnavailable as error:
            refused = Refusal(_UNAVAILABLE, f"the secret store does not answer: {error}", "pin status")
        except SecretRefused as error:
            refused = error.refusal
        except OSError as error:
            refused = Refusal(_UNAVAILABLE, f"cannot write the files of secrets: {error.strerror}", "")
        else:
            # Also if some are refused: the next request returns as soon as one of them is granted.
            self._digest = versions.digest
            self._folder.mark_if_complete(self._names)
            return self._missing(refused) if refused else self._settled()
        self._digest = ""
        missing = self._missing(refused)
        self._times.sleep(RETRY_S)
        return missing

    def _write(self, secrets: Mapping[str, int | Refusal]) -> Refusal | None:
        """Writes the secrets that have another version than their file. Returns the first refusal."""
        refused = None
        for name, version in secrets.items():
            if isinstance(version, Refusal):
                refused = refused or version
            elif version != self._folder.version_of(name):
                written, value = self._client.fetch_value(name)
                self._folder.write(name, written, value)
                _log(f"{name}: version {written}")
        return refused

    def _settled(self) -> None:
        self._logged = ""

    def _missing(self, refusal: Refusal) -> Missing | None:
        """Why secrets are missing. None if there is a file for each: those are kept."""
        if refusal.what != self._logged:
            self._logged = refusal.what
            _log(f"{refusal.reason}: {refusal.what}")
        if self._folder.is_complete(self._names):
            return None
        return Missing(refusal, self._folder.missing_since(self._times.now().isoformat(timespec="seconds")))


def _log(line: str) -> None:
    sys.stderr.write(f"{line}\n")
    sys.stderr.flush()


def main() -> None:
    folder, store = sys.argv[1:]
    # As PID 1 of a container, this process ignores signals without an explicit handler.
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: os._exit(0))
    identity = Path(os.environ.get("IDENTITY_FOLDER", "/run/identity"))
    client = SecretClient(StoreConnection(store, IdentityCredentials(identity, STORE_NAME)))
    project, names = os.environ["PIN_PROJECT"], os.environ["SECRETS"].split()
    secrets = SecretFolder(Path(folder), project, int(os.environ["SECRETS_GROUP"]))
    secrets.remove_others(names)
    # A new container of a pod has the files already, also while the store is down.
    secrets.mark_if_complete(names)
    sys.exit(Agent(client, secrets, names).run())


if __name__ == "__main__":
    main()
