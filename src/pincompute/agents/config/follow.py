"""Sidecar that follows live bundles: `python -m pincompute.agents.config.follow FOLDER STORE`.

The variable LIVE_CONFIG_BUNDLES names them, such as `ads/flags ads/limits`. A change is installed as soon as the store
reports it; while the store does not respond, or has deleted a bundle, the last good version stays. The file `.complete`
appears when every bundle was installed once. The name of this module is part of runtime parts that are already
installed.
"""

from __future__ import annotations

import os
import random
import signal
import sys
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from pincompute.agents.config.bundle_folder import BundleAltered, BundleFolder
from pincompute.agents.config.patience import wait_for_bundles
from pincompute.agents.config.source import BundleRejected, ConfigSource
from pincompute.agents.plain_log import write_log_line
from pincompute.agents.store_connection import StoreUnavailable

RETRY_DELAY_S = 1.0
REPORT_INTERVAL = 60
"""Every so many failures, the log has the causes again."""
COMPLETE = ".complete"
_UNKNOWN = "-"
"""State that no bundle has."""


class Follower:
    """Keeps the live bundles of a pod at their current versions."""

    def __init__(self, bundles: Sequence[str], source: ConfigSource, folder: Path) -> None:
        self._bundles = bundles
        self._source = source
        self._folder = BundleFolder(folder)
        self._complete = folder / COMPLETE
        self._installed = dict.fromkeys(bundles, _UNKNOWN)
        """Version and digest of each bundle, as this process installed it last."""

    def follow_once(self) -> dict[str, str]:
        """Wait for a change and install it. Returns the cause for each bundle that is not as the store has it."""
        try:
            states = self._source.wait_changed(self._bundles, list(self._installed.values()))
        except (StoreUnavailable, BundleRejected, ValueError) as error:
            return dict.fromkeys(self._bundles, str(error) or type(error).__name__)
        causes = {}
        for bundle, state in zip(self._bundles, states, strict=True):
            # Each is tried, so that one that fails does not delay another.
            try:
                self._install(bundle, state)
            except (StoreUnavailable, BundleRejected, BundleAltered, OSError, ValueError, KeyError) as error:
                causes[bundle] = str(error) or type(error).__name__
        return causes

    def find_missing(self) -> dict[str, str]:
        """The same, for bundles of which the pod has no version at all; with a former one, an application can start."""
        causes = self.follow_once() if not self._has_all() else {}
        missing = {bundle: why for bundle, why in causes.items() if not self._folder.installed_digest(_name(bundle))}
        if not missing:
            self._complete.touch()
        return missing

    def _has_all(self) -> bool:
        return all(self._folder.installed_digest(_name(each)) for each in self._bundles)

    def _install(self, bundle: str, state: str) -> None:
        if not state:
            raise BundleRejected("the store has no such bundle, or not for this project")
        if state == self._installed[bundle]:
            return
        number, _, digest = state.partition("=")
        found = self._source.read_version(bundle, int(number))
        read = partial(self._source.read_content, bundle, found.number)
        self._folder.install(_name(bundle), digest, found.files, read)
        self._installed[bundle] = state
        write_log_line("config", "live bundle installed", {"bundle": bundle, "version": found.number})


def _name(bundle: str) -> str:
    return bundle.rpartition("/")[2]


def follow_forever(follower: Follower) -> None:
    failures = 0
    while True:
        if causes := follower.follow_once():
            if failures % REPORT_INTERVAL == 0:
                write_log_line("config", "live bundles not current", {"causes": causes, "failures": failures})
            failures += 1
            # Spread, so that all pods do not return at once to a store that starts.
            time.sleep(RETRY_DELAY_S * random.uniform(0.5, 1.5))  # noqa: S311  (not for security)
        elif failures:
            write_log_line("config", "live bundles current again", {"failures": failures})
            failures = 0


def main() -> None:
    folder, store = sys.argv[1:]
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    bundles = os.environ.get("LIVE_CONFIG_BUNDLES", "").split()
    follower = Follower(bundles, ConfigSource.of_pod(store), Path(folder))
    wait_for_bundles(follower.find_missing, Path(folder), store)
    follow_forever(follower)


if __name__ == "__main__":
    main()
