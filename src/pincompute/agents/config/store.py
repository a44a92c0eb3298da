"""Configuration bundles of all projects: contents by digest, numbered versions, and one current version of each."""

from __future__ import annotations

import asyncio
import shutil
from collections import defaultdict
from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager
from pathlib import Path

from msgspec.structs import replace

from pincompute.agents.config.limits import ConfigLimits
from pincompute.agents.config.project_folder import ProjectFolder
from pincompute.api.config_bundle import (
    ConfigBundle,
    ConfigContent,
    ConfigFile,
    ConfigVersion,
    PublishedConfig,
)
from pincompute.base.clock import Clock, SystemClock
from pincompute.base.problem import Problem, Refused, Where
from pincompute.base.reasons import CONFIG_INVALID, CONFIG_LIMIT, CONFIG_STORE_FULL, CONFIG_UNKNOWN
from pincompute.objects.config_bundle import BundleFile, bundle_digest, bundle_errors, content_digest
from pincompute.objects.times import format_time

Key = tuple[str, str]
"""Project and name of a bundle."""
DEFAULT_LIMITS = ConfigLimits()


class ConfigStore:
    """Every write is complete on disk before it is answered. One process writes, so that writes have an order."""

    def __init__(self, folder: Path, limits: ConfigLimits = DEFAULT_LIMITS, clock: Clock | None = None) -> None:
        self._folder = folder
        self._limits = limits
        self._clock = clock or SystemClock()
        self._projects: dict[str, ProjectFolder] = {}
        self._bundles: dict[Key, ConfigBundle] = {}
        self._namespaces: dict[str, str] = {}
        """Uid of each namespace, by name."""
        self._watchers: defaultdict[Key, set[asyncio.Event]] = defaultdict(set)
        self._watched: defaultdict[str, int] = defaultdict(int)
        for each in sorted(folder.iterdir()) if folder.is_dir() else ():
            self._open(each.name)

    # Namespaces

    def observe_namespace(self, name: str, uid: str) -> None:
        """Removes what a deleted project of the same name has left."""
        self._namespaces[name] = uid
        if name in self._projects and self._projects[name].namespace_uid not in ("", uid):
            self.remove_project(name)

    def remove_missing_projects(self) -> None:
        """Removes projects that were deleted while this process did not run."""
        for project in set(self._projects) - set(self._namespaces):
            self.remove_project(project)

    def remove_project(self, project: str) -> None:
        if folder := self._projects.pop(project, None):
            shutil.rmtree(folder.folder, ignore_errors=True)
        for key, bundle in list(self._bundles.items()):
            if key[0] == project:
                del self._bundles[key]
                self._notify(key)
            elif project in bundle.shared_with:
                # A later project of this name was not meant.
                self._write(replace(bundle, shared_with=[each for each in bundle.shared_with if each != project]))

    def forget_namespace(self, name: str) -> None:
        self._namespaces.pop(name, None)
        self.remove_project(name)

    # Writes

    def put_content(self, project: str, digest: str, content: bytes) -> None:
        """Store the content of a file, before the bundle that has it."""
        if content_digest(content) != digest:
            what = f"the content has the digest {content_digest(content)}, and not {digest}"
            raise Refused(Problem(CONFIG_INVALID, what))
        folder = self._open(project)
        if not folder.has_content(digest):
            self._make_room(project, len(content))
            with _full_disk_refused():
                folder.write_content(digest, content)

    def publish(
        self, project: str, name: str, files: Sequence[BundleFile], by: str, in_use: Iterable[int] = ()
    ) -> PublishedConfig:
        """Add a version and make it the current one; the same files as the current version are no new one."""
        where = Where(object=f"{project}/{name}")
        if errors := list(bundle_errors(files)):
            raise Refused(*(Problem(CONFIG_INVALID, each, where) for each in errors))
        folder, digest = self._open(project), bundle_digest(files)
        before = self._bundles.get((project, name)) or ConfigBundle(project=project, name=name)
        current = before.find_version(before.current)
        if current and current.digest == digest:
            return PublishedConfig(version=current.version, digest=digest, unchanged=True)
        if missing := sorted({each.digest for each in files if not folder.has_content(each.digest)}):
            return PublishedConfig(digest=digest, missing=missing)
        if wrong := [each.path for each in files if folder.content_path(each.digest).stat().st_size != each.size]:
            raise Refused(Problem(CONFIG_INVALID, f"the size of {wrong[0]!r} is wrong", where))
        self._require_bundle_slot(before)
        added = ConfigVersion(
            version=max((each.version for each in before.versions), default=0) + 1,
            digest=digest,
            files=len(files),
            size=sum(each.size for each in files),
            published_at=format_time(self._clock.now()),
            published_by=by,
        )
        kept = _newest(before.versions, self._limits.versions - 1, {before.current, *in_use})
        # The manifest has at most 320 bytes for each file.
        self._make_room(project, 320 * len(files))
        with _full_disk_refused():
            folder.write_manifest(digest, sorted(files))
            self._write(replace(before, current=added.version, versions=[*kept, added]))
        if len(kept) < len(before.versions):
            self._collect(project)
        return PublishedConfig(version=added.version, digest=digest)

    def point(self, project: str, name: str, version: int) -> ConfigBundle:
        """Make a version the current one."""
        bundle = self.bundle(project, name)
        if bundle.find_version(version) is None:
            raise Refused(version_unknown(bundle, version))
        with _full_disk_refused():
            self._write(replace(bundle, current=version))
        return self.bundle(project, name)

    def share(self, project: str, name: str, projects: Iterable[str]) -> ConfigBundle:
        """Let exactly these other projects read a bundle."""
        with _full_disk_refused():
            self._write(replace(self.bundle(project, name), shared_with=sorted(set(projects) - {project})))
        return self.bundle(project, name)

    def delete(self, project: str, name: str) -> None:
        self.bundle(project, name)
        del self._bundles[project, name]
        self._projects[project].remove_bundle(name)
        self._collect(project)
        self._notify((project, name))

    # Reads

    def bundles(self, project: str) -> list[ConfigBundle]:
        return [self._bundles[key] for key in sorted(self._bundles) if key[0] == project]

    def bundle(self, project: str, name: str) -> ConfigBundle:
        if found := self._bundles.get((project, name)):
            return found
        raise Refused(bundle_unknown(project, name))

    def read_version(self, project: str, name: str, version: int = 0) -> ConfigContent:
        """The files of a version; of the current one by default."""
        bundle = self.bundle(project, name)
        found = bundle.find_version(version or bundle.current)
        if found is None:
            raise Refused(version_unknown(bundle, version))
        files = self._projects[project].read_manifest(found.digest)
        return ConfigContent(
            version=found.version, digest=found.digest, files=[ConfigFile(**each._asdict()) for each in files]
        )

    def read_content(self, project: str, digest: str) -> bytes:
        """The content of a file. The caller has checked the reader's rights."""
        try:
            return self._open(project).content_path(digest).read_bytes()
        except FileNotFoundError:
            what = f"project {project} has no file with the digest {digest}"
            raise Refused(Problem(CONFIG_UNKNOWN, what)) from None

    @contextmanager
    def watch(self, watcher: str, keys: Sequence[Key]) -> Generator[asyncio.Event]:
        """An event that is set at a change of any of the bundles. `watcher` is the project that waits."""
        if (
            self._watched[watcher] >= self._limits.live_requests
            or self.live_request_count >= self._limits.total_live_requests
        ):
            what = f"{self._watched[watcher]:,} requests of project {watcher} wait for changes already"
            raise Refused(Problem(CONFIG_LIMIT, what))
        changed = asyncio.Event()
        self._watched[watcher] += 1
        for key in keys:
            self._watchers[key].add(changed)
        try:
            yield changed
        finally:
            self._watched[watcher] -= 1
            if not self._watched[watcher]:
                del self._watched[watcher]
            for key in keys:
                self._watchers[key].discard(changed)
                if not self._watchers[key]:
                    del self._watchers[key]

    @property
    def used_bytes(self) -> int:
        return sum(each.used_bytes for each in self._projects.values())

    @property
    def bundle_count(self) -> int:
        return len(self._bundles)

    @property
    def live_request_count(self) -> int:
        return sum(self._watched.values())

    def collect_unused(self) -> None:
        """Removes contents of no bundle in all projects."""
        for project in self._projects:
            self._collect(project)

    # Details

    def _open(self, project: str) -> ProjectFolder:
        folder = self._projects.get(project)
        if folder is None:
            folder = self._projects[project] = ProjectFolder(self._folder / project)
            for bundle in folder.read_bundles().values():
                self._bundles[project, bundle.name] = bundle
        return folder

    def _write(self, bundle: ConfigBundle) -> None:
        folder = self._projects[bundle.project]
        if not folder.namespace_uid and bundle.project in self._namespaces:
            folder.bind(self._namespaces[bundle.project])
        folder.write_bundle(bundle)
        self._bundles[bundle.project, bundle.name] = bundle
        self._notify((bundle.project, bundle.name))

    def _notify(self, key: Key) -> None:
        for each in self._watchers.get(key, ()):
            each.set()

    def _require_bundle_slot(self, bundle: ConfigBundle) -> None:
        count = len(self.bundles(bundle.project))
        if not bundle.versions and count >= self._limits.bundles:
            raise Refused(_limit_problem(bundle.project, f"{count:,} bundles", f"{self._limits.bundles:,}"))

    def _make_room(self, project: str, size: int) -> None:
        if self._fits(project, size):
            return
        self._collect(project)
        if not self._fits(project, size):
            folder, limits = self._projects[project], self._limits
            used = f"{folder.used_bytes:,} bytes in {folder.file_count:,} files of bundles"
            raise Refused(_limit_problem(project, used, f"{limits.bytes:,} bytes and {limits.files:,} files"))

    def _fits(self, project: str, size: int) -> bool:
        folder = self._open(project)
        return folder.used_bytes + size <= self._limits.bytes and folder.file_count < self._limits.files

    def _collect(self, project: str) -> None:
        manifests = {version.digest for bundle in self.bundles(project) for version in bundle.versions}
        self._projects[project].remove_unused(
            manifests, before=self._clock.now().timestamp() - self._limits.unused_seconds
        )


def _newest(versions: Sequence[ConfigVersion], count: int, in_use: set[int]) -> list[ConfigVersion]:
    """The newest versions, and those in use however old they are."""
    first = len(versions) - count
    return [each for index, each in enumerate(versions) if index >= first or each.version in in_use]


def bundle_unknown(project: str, name: str) -> Problem:
    """The answer both for a bundle that does not exist and for one that the caller may not read."""
    what = f"no configuration bundle {project}/{name}, or no permission to read it"
    return Problem(CONFIG_UNKNOWN, what, next=f"pin config list --project {project}")


def version_unknown(bundle: ConfigBundle, version: int) -> Problem:
    known = ", ".join(str(each.version) for each in bundle.versions[-10:])
    return Problem(
        CONFIG_UNKNOWN,
        f"bundle {bundle.project}/{bundle.name} has no version {version}",
        note=f"its last versions: {known}",
        next=f"pin config show {bundle.name} --project {bundle.project}",
    )


def _limit_problem(project: str, used: str, limit: str) -> Problem:
    what = f"project {project} has {used}, and the limit is {limit}"
    return Problem(CONFIG_LIMIT, what, next=f"pin config list --project {project}, then: pin config delete NAME")


@contextmanager
def _full_disk_refused() -> Generator[None]:
    try:
        yield
    except OSError as error:
        what = f"the config store cannot write: {error.strerror or error}"
        raise Refused(Problem(CONFIG_STORE_FULL, what, next="free space on its disk")) from error
