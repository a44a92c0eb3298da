"""Init container with which a pod fetches its bundles: `python -m pincompute.agents.config.fetch FOLDER STORE`.

The variable CONFIG_BUNDLES names them, such as `ads/flags@3=DIGEST ads/limits@1=DIGEST`. It waits for a store that does
not respond as long as it takes, and ends with an error if the store has another bundle than the one of the revision.
The name of this module is part of runtime parts that are already installed.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

from pincompute.agents.config.bundle_folder import BundleAltered, BundleFolder
from pincompute.agents.config.patience import wait_for_bundles
from pincompute.agents.config.source import BundleRejected, ConfigSource
from pincompute.agents.plain_log import write_log_line
from pincompute.agents.store_connection import StoreUnavailable
from pincompute.objects.config_bundle import REJECTED_MESSAGE


class PinnedBundle(NamedTuple):
    """One bundle of the variable."""

    bundle: str
    """Project and name."""
    version: int
    digest: str

    @classmethod
    def parse(cls, text: str) -> PinnedBundle:
        reference, _, digest = text.partition("=")
        bundle, _, version = reference.rpartition("@")
        return cls(bundle, int(version), digest)

    @property
    def name(self) -> str:
        return self.bundle.rpartition("/")[2]

    def __str__(self) -> str:
        return f"{self.bundle}@{self.version}"


class Fetcher:
    """Fetches each bundle once, and remembers which are there, and which the store rejected."""

    def __init__(self, bundles: Sequence[PinnedBundle], source: ConfigSource, folder: BundleFolder) -> None:
        self._source = source
        self._folder = folder
        self._open = list(bundles)
        self.rejected: dict[PinnedBundle, str] = {}

    def find_missing(self) -> dict[str, str]:
        """Try what is not there yet; return the cause for each bundle that could not be fetched."""
        missing = {}
        for bundle in list(self._open):
            try:
                self._fetch_bundle(bundle)
            except BundleRejected as error:
                self.rejected[bundle] = str(error)
            except (StoreUnavailable, BundleAltered, OSError, ValueError, KeyError) as error:
                missing[str(bundle)] = str(error) or type(error).__name__
                continue
            self._open.remove(bundle)
        return missing

    def _fetch_bundle(self, bundle: PinnedBundle) -> None:
        found = self._source.read_version(bundle.bundle, bundle.version)
        if found.digest != bundle.digest:
            what = f"the store has it with the digest {found.digest[:12]}, and the revision with {bundle.digest[:12]}"
            raise BundleRejected(what)
        read = partial(self._source.read_content, bundle.bundle, bundle.version)
        self._folder.install(bundle.name, bundle.digest, found.files, read)
        write_log_line("config", "bundle fetched", {"bundle": str(bundle)})


def main() -> None:
    folder, store = sys.argv[1:]
    bundles = [PinnedBundle.parse(each) for each in os.environ.get("CONFIG_BUNDLES", "").split()]
    fetcher = Fetcher(bundles, ConfigSource.of_pod(store), BundleFolder(Path(folder)))
    wait_for_bundles(fetcher.find_missing, Path(folder), store)
    if fetcher.rejected:
        causes = "; ".join(f"{bundle} ({why})" for bundle, why in fetcher.rejected.items())
        sys.exit(f"{REJECTED_MESSAGE} by {store}: {causes}")


if __name__ == "__main__":
    main()
