"""Configuration bundles at the desk: publishes and rolls them, and determines the versions that a workload gets."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

import msgspec

from pincompute.api.config_bundle import (
    BundleReference,
    ConfigPin,
    PublishConfig,
    PublishedConfig,
    parse_references,
)
from pincompute.api.workload import Workload
from pincompute.base.problem import Problem, Refused, Where
from pincompute.base.reasons import (
    CONFIG_IN_USE,
    CONFIG_STORE_MISSING,
    CONFIG_UNKNOWN,
    CONFIG_VERSION_GONE,
)
from pincompute.platforms.config_store import ConfigStoreClient
from pincompute.platforms.protocol import Platform

W = TypeVar("W", bound=Workload)
_MAX_NAMED = 5


class ConfigBundles:
    """The bundles of one platform."""

    def __init__(self, store: ConfigStoreClient | None, platform: Platform) -> None:
        """Without a store every operation is refused, also the deploy of a workload with bundles."""
        self._store = store
        self._platform = platform

    @property
    def store(self) -> ConfigStoreClient:
        """The store, for all that needs no knowledge of workloads. Refused where there is none."""
        if self._store is None:
            what, next_ = "this platform has no config store", "run one with a real node: pin up"
            raise Refused(Problem(CONFIG_STORE_MISSING, what, next=next_))
        return self._store

    # Of users

    async def publish_version(self, project: str, name: str, asked: PublishConfig, by: str) -> PublishedConfig:
        """Publish a version. Those that workloads have are kept, however old they are."""
        store = self.store
        in_use = sorted({pin.version for _, pin in await self._pins_of(project, name)})
        return await store.publish_version(project, name, asked, by, in_use)

    async def delete_bundle(self, project: str, name: str) -> None:
        store = self.store
        await store.read_bundle(project, name)
        users = [*(user for user, _ in await self._pins_of(project, name)), *await self._followers_of(project, name)]
        if users:
            named = ", ".join(sorted(set(users))[:_MAX_NAMED])
            what = f"bundle {project}/{name} cannot be deleted: {len(set(users))} workloads have it"
            next_ = "remove it from config in their files"
            raise Refused(Problem(CONFIG_IN_USE, what, Where(object=f"{project}/{name}"), named, next_))
        await store.delete(project, name)

    # Of workloads

    async def resolve(self, workload: W) -> W:
        """The workload with the versions of its bundles. Refused with every bundle that it may not have."""
        references = parse_references(workload.spec.config, workload.metadata.namespace)
        if not references:
            return _with_versions(workload, [])
        found: list[ConfigPin | None] = []
        problems: list[Problem] = []
        for reference in references:
            try:
                pin = await self._resolve_reference(reference, workload)
            except Refused as refused:
                if refused.problems[0].reason.http_status >= 500:
                    raise
                problems += refused.problems
            else:
                found.append(pin)
        if problems:
            raise Refused(*problems)
        return _with_versions(workload, [each for each in found if each])

    async def missing_versions(self, workload: Workload) -> tuple[Problem, ...]:
        """Versions of a revision, to which a workload is to be rolled back, that the store does not have any more."""
        problems = []
        for pin in workload.spec.config_versions:
            project, _, name = pin.bundle.partition("/")
            try:
                bundle = await self.store.read_bundle(project, name)
            except Refused as refused:
                if refused.problems[0].reason.http_status >= 500:
                    raise
                bundle = None
            version = bundle.find_version(pin.version) if bundle else None
            if version is None or version.digest != pin.digest:
                what = f"version {pin.version} of bundle {pin.bundle} was deleted"
                where = Where(object=workload.metadata.key, field="spec.config")
                problems.append(Problem(CONFIG_VERSION_GONE, what, where, next=f"pin config show {name}"))
        return tuple(problems)

    async def _resolve_reference(self, reference: BundleReference, workload: Workload) -> ConfigPin | None:
        """The version of a bundle; None for a live one, which only must exist."""
        where = Where(object=workload.metadata.key, field="spec.config")
        project = workload.metadata.namespace
        try:
            bundle = await self.store.read_bundle(reference.project, reference.name)
        except Refused as refused:
            if refused.problems[0].reason is not CONFIG_UNKNOWN:
                raise
            raise Refused(_unknown(reference, where)) from refused
        if not bundle.readable_by(project):
            raise Refused(_unknown(reference, where))
        if reference.live:
            return None
        version = bundle.find_version(reference.version or bundle.current)
        if version is None:
            known = ", ".join(str(each.version) for each in bundle.versions[-10:])
            what = f"bundle {reference.bundle} has no version {reference.version}"
            raise Refused(Problem(CONFIG_UNKNOWN, what, where, f"its last versions: {known}"))
        return ConfigPin(bundle=reference.bundle, version=version.version, digest=version.digest)

    async def _pins_of(self, project: str, name: str) -> list[tuple[str, ConfigPin]]:
        """Workloads with a version of the bundle, and that version."""
        return [
            (workload.metadata.key, pin)
            for workload in await self._possible_users(project, name)
            for pin in workload.spec.config_versions
            if pin.bundle == f"{project}/{name}"
        ]

    async def _followers_of(self, project: str, name: str) -> list[str]:
        return [
            workload.metadata.key
            for workload in await self._possible_users(project, name)
            for each in parse_references(workload.spec.config, workload.metadata.namespace)
            if each.live and (each.project, each.name) == (project, name)
        ]

    async def _possible_users(self, project: str, name: str) -> list[Workload]:
        """Workloads of the project, and of those with which the bundle is shared."""
        bundles = await self.store.list_bundles(project)
        shared = (each.shared_with for each in bundles if each.name == name)
        known = await self._platform.cached_projects()
        projects = {project, *(other for each in shared for other in each if other in known)}
        return [each for other in sorted(projects) for each in await self._platform.list_workloads(other)]


def _with_versions(workload: W, pins: Iterable[ConfigPin]) -> W:
    """A file may not say of itself which versions it has."""
    return msgspec.structs.replace(workload, spec=msgspec.structs.replace(workload.spec, config_versions=list(pins)))


def _unknown(reference: BundleReference, where: Where) -> Problem:
    what = f"no configuration bundle {reference.bundle}, or no permission to read it"
    next_ = f"pin config publish {reference.name} FOLDER --project {reference.project}"
    return Problem(CONFIG_UNKNOWN, what, where, next=next_)
