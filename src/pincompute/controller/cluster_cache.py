"""The operator's view of the cluster: one informer per kind, with objects grouped by the key that they belong to.

Every event does two things: it updates the cache, and it calls back with the key that has to be reconciled and why. An
event about a native or a pod reconciles its owner, found by labels. An event about a project or a runtime reconciles
the owners that it affects.

Before the first full list of every kind (`wait_synced`) the cache must not be used for planning: an object that is
merely not listed yet looks deleted. A kind that the API server does not serve, or forbids to us, does not hold up the
others. It is reported in `unwatchable_kinds`, and passes leave its objects alone.

Memory is what limits the size of a cluster. Pods and natives are therefore decoded into the few fields that planning
reads; the server's full objects are never kept.
"""

from __future__ import annotations

import asyncio
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import msgspec
import structlog

from pincompute.api.custom_resource import CustomResource
from pincompute.api.names import KIND_LABEL, PROJECT_LABEL, WORKLOAD_LABEL
from pincompute.api.service import PinterestService
from pincompute.api.structs import LenientStruct, Metadata
from pincompute.api.training_job import PinterestTrainingJob
from pincompute.api.workload import Workload
from pincompute.base.clock import Clock
from pincompute.base.problem import Problem
from pincompute.base.reasons import KIND_NOT_SERVED, RIGHTS_MISSING
from pincompute.controller.passes import Key, Trigger
from pincompute.controller.planning_context import PlanningContextCache
from pincompute.controller.pod_sharing import share_pod_values
from pincompute.controller.resources import (
    CUSTOM_RESOURCES,
    OPTIONAL_NATIVES,
    POD_CONTROLLERS,
    PROJECT_NATIVE_SELECTOR,
    PROJECT_NATIVES,
    RECONCILED_KINDS,
    WORKLOAD_NATIVES,
    WORKLOADS,
)
from pincompute.kube.client import Client
from pincompute.kube.informer import Informer
from pincompute.kube.resource import INGRESS_CLASSES, INGRESSES, PODS, Resource
from pincompute.kube.watch import DELETED, MODIFIED, Event
from pincompute.planning.break_glass import check_break_glass_expired
from pincompute.planning.observed_pods import Pod
from pincompute.planning.snapshot import Cluster, Native, ServedCertificate, Snapshot

ObjectsOfKey = dict[tuple[str, str], Any]
"""Objects that belong to one key, by kind and name."""

ROLL_COUNT_INTERVAL_S = 1.0
"""Minimum time between two passes of the runtime that is being rolled out. Each of them counts all workloads."""


log = structlog.get_logger()


class UndecodableOwner(LenientStruct, frozen=True):
    """The readable rest of an owner with a spec that cannot be decoded."""

    metadata: Metadata
    status: dict[str, Any] = msgspec.field(default_factory=dict)
    why: str = ""


class IngressClass(LenientStruct, frozen=True):
    """An ingress class, of which only the name is used."""

    metadata: Metadata


class ClusterCache:
    """Answers from memory, never by a request. One task runs it; readers need no locks."""

    def __init__(self, client: Client, on_change: Callable[[Key, Trigger], None], clock: Clock) -> None:
        self._on_change = on_change
        self._clock = clock
        self._owners: defaultdict[Key, dict[str, CustomResource]] = defaultdict(dict)
        """By kind. Several kinds share a key only if a workload was created past the desk."""
        self._natives: defaultdict[Key, ObjectsOfKey] = defaultdict(dict)
        self._pods: defaultdict[Key, ObjectsOfKey] = defaultdict(dict)
        self._undecodable: defaultdict[Key, dict[str, UndecodableOwner]] = defaultdict(dict)
        """By kind."""
        self._context = PlanningContextCache()
        self._certificates: dict[Key, ServedCertificate] = {}
        self._complete = False
        self._roll_timer: asyncio.TimerHandle | None = None
        """Enqueues the rolling runtime; set while such a request is pending."""
        self._roll_enqueued_at = -ROLL_COUNT_INTERVAL_S
        self._informers: dict[str, Informer[Any]] = {
            **{
                kind: Informer(
                    client,
                    CUSTOM_RESOURCES[kind],
                    type=type_,
                    on_change=self._on_owner_event,
                    on_problem=partial(self._on_watch_problem, kind),
                    on_unreadable=partial(self._on_undecodable_owner, kind),
                )
                for kind, type_ in RECONCILED_KINDS.items()
            },
            PODS.kind: Informer(
                client,
                PODS,
                type=Pod,
                labels=WORKLOAD_LABEL,
                on_change=partial(self._on_member_event, self._pods, PODS.kind),
                on_problem=partial(self._on_watch_problem, PODS.kind),
                share=share_pod_values,
            ),
            **{
                kind: self._new_native_informer(client, each, WORKLOAD_LABEL)
                for kind, each in {**WORKLOAD_NATIVES, **POD_CONTROLLERS}.items()
            },
            **{
                # Projects and workloads become policies: one watch for both.
                kind: self._new_native_informer(
                    client, each, PROJECT_LABEL if kind in WORKLOAD_NATIVES else PROJECT_NATIVE_SELECTOR
                )
                for kind, each in PROJECT_NATIVES.items()
            },
            INGRESS_CLASSES.kind: Informer(
                client,
                INGRESS_CLASSES,
                type=IngressClass,
                on_change=self._on_ingress_class_event,
                on_problem=partial(self._on_watch_problem, INGRESS_CLASSES.kind),
            ),
        }

    async def run(self) -> None:
        """Watches every kind until cancelled."""
        async with asyncio.TaskGroup() as watches:
            for informer in self._informers.values():
                watches.create_task(informer.run())

    async def wait_synced(self) -> None:
        """Returns when every kind was listed once, or was refused by the server."""
        for informer in self._informers.values():
            await informer.responded.wait()
        self._complete = True

    def age_s(self) -> float:
        """Seconds since the API server was last heard, for the kind that was silent the longest."""
        return max(self.ages_s().values())

    def ages_s(self) -> dict[str, float]:
        """Seconds since the API server was last heard, by kind. Optional kinds that are not served are left out."""
        return {
            kind: informer.staleness_s() for kind, informer in self._informers.items() if kind not in self._not_served()
        }

    def stalled_for_s(self) -> float:
        """Seconds in which the slowest watch has neither received anything nor tried to reconnect."""
        return max(each.idle_s() for each in self._informers.values())

    def retry_watches_now(self) -> None:
        """Ends the backoff of all broken watches. Called when another request shows that the API server is back."""
        for informer in self._informers.values():
            informer.retry_now()

    @property
    def complete(self) -> bool:
        """Whether `wait_synced` has returned."""
        return self._complete

    @property
    def unwatchable_kinds(self) -> dict[str, Problem]:
        """Kinds that cannot be watched, each with the reason as users read it."""
        return {
            kind: _unwatchable_problem(kind, each.problem) for kind, each in self._informers.items() if each.problem
        }

    def undecodable(self, key: Key) -> dict[str, UndecodableOwner]:
        """Owners of this key with an undecodable spec, by kind."""
        return self._undecodable.get(key, {})

    def forget_undecodable(self, key: Key, kind: str) -> None:
        self._undecodable.get(key, {}).pop(kind, None)

    def owners(self, key: Key) -> tuple[Any, ...]:
        """Owners of this key, oldest first. More than one means that a name was taken twice, in different kinds."""
        found = self._owners.get(key, {}).values()
        return tuple(sorted(found, key=lambda each: (each.metadata.creation_timestamp, each.kind)))

    def count_unreviewed(self) -> Counter[tuple[str, bool]]:
        """Workloads with an emergency override, by project and by whether the override has expired."""
        now, workloads = self._clock.now(), (each for each in self._all_owners() if isinstance(each, Workload))
        overridden = (each for each in workloads if each.spec.break_glass)
        return Counter(
            (each.metadata.namespace, check_break_glass_expired(each, now) is not None) for each in overridden
        )

    def snapshot(self, owner: CustomResource, cluster: Cluster) -> Snapshot:
        """Freezes everything that planning may know about one owner. Sorted, so that equal states plan equally."""
        natives = self._natives.get(key_of(owner), {})
        pods = self._pods.get(key_of(owner), {})
        now = self._clock.now()
        return Snapshot(
            owner,
            # The items of a list response lack their kind; it is known from the informer that received them.
            tuple(msgspec.structs.replace(natives[each], kind=each[0]) for each in sorted(natives)),
            tuple(pods[each] for each in sorted(pods)),
            msgspec.structs.replace(
                cluster, served_kinds=tuple(each for each in OPTIONAL_NATIVES if each not in self._not_served())
            ),
            now,
            self._context.projects.get(owner.metadata.namespace),
            self._context.runtimes_for(owner, self._all_owners(), now),
            self._context.host_verdict(owner, cluster),
            ingress_classes=self._ingress_classes(),
            certificate=self._certificates.get(key_of(owner)),
        )

    def tls_services(self) -> Iterator[tuple[Key, PinterestService, Native]]:
        """The services with TLS, each with its Ingress."""
        for owner in self._all_owners():
            ingress = self._natives.get(key_of(owner), {}).get((INGRESSES.kind, owner.metadata.name))
            if isinstance(owner, PinterestService) and owner.spec.load_balancer.has_tls and ingress is not None:
                yield key_of(owner), owner, ingress

    def replace_certificates(self, certificates: dict[Key, ServedCertificate]) -> None:
        """Takes in the certificates with which addresses are served, and reconciles the services with another one."""
        before, self._certificates = self._certificates, certificates
        for key in sorted(before.keys() | certificates.keys()):
            if before.get(key) != certificates.get(key):
                self._on_change(key, Trigger.CONTEXT_CHANGED)

    def includes(self, kind: str, resource_version: int) -> bool:
        """Whether the cache of a kind is at least as new as this resourceVersion."""
        return self._informers[kind].resource_version >= resource_version

    @property
    def _object_trigger(self) -> Trigger:
        """Until the cache is complete, objects are found rather than changed."""
        return Trigger.OBJECT_CHANGED if self._complete else Trigger.INITIAL_LIST

    def _not_served(self) -> frozenset[str]:
        """Optional kinds that this cluster does not have."""
        return frozenset(kind for kind in OPTIONAL_NATIVES if self._informers[kind].problem)

    def _ingress_classes(self) -> tuple[str, ...] | None:
        """Names of the ingress classes; None if they cannot be listed."""
        informer = self._informers[INGRESS_CLASSES.kind]
        return None if informer.problem else tuple(sorted(name for _, name in informer.items))

    def _all_owners(self) -> Iterator[CustomResource]:
        return (owner for owners in self._owners.values() for owner in owners.values())

    def _new_native_informer(self, client: Client, resource: Resource, labels: str) -> Informer[Native]:
        return Informer(
            client,
            resource,
            type=Native,
            # Only objects with our labels are sent and decoded; a cluster may hold far more objects than ours.
            labels=labels,
            on_change=partial(self._on_member_event, self._natives, resource.kind),
            on_problem=partial(self._on_watch_problem, resource.kind),
        )

    def _on_member_event(self, cache: defaultdict[Key, ObjectsOfKey], kind: str, event: Event[Any]) -> None:
        """Takes in an event about a native or a pod."""
        key = _owner_key(event.object.metadata)
        name = kind, event.object.metadata.name
        if event.before is not None and (former := _owner_key(event.before.metadata)) != key:
            # A changed label moves the object to another key. For its former key it is deleted.
            _update(cache, former, name, Event(DELETED, event.before))
            self._on_change(former, self._object_trigger)
        _update(cache, key, name, event)
        self._on_change(key, self._object_trigger)

    def _on_owner_event(self, event: Event[CustomResource]) -> None:
        owner = event.object
        self.forget_undecodable(key_of(owner), owner.kind)
        _update(self._owners, key_of(owner), owner.kind, event)
        self._on_change(key_of(owner), Trigger.SPEC_CHANGED if _spec_changed(event) else self._object_trigger)
        if isinstance(owner, Workload):
            self._enqueue_rolling_runtime()
        self._on_context_event(event)

    def _on_ingress_class_event(self, event: Event[IngressClass]) -> None:
        """Reconciles the services with an Ingress, as a class has been added or deleted."""
        if self._complete and event.type != MODIFIED:
            for owner in [each for each in self._all_owners() if _has_ingress(each)]:
                self._on_change(key_of(owner), Trigger.CONTEXT_CHANGED)

    def _on_undecodable_owner(self, kind: str, event: Event[msgspec.Raw], why: str) -> None:
        """Takes in an owner of another schema version, for example of a newer operator. Its natives are left alone."""
        undecodable = msgspec.json.decode(event.object, type=UndecodableOwner)
        metadata = undecodable.metadata
        key = Key(metadata.namespace, metadata.name, "" if kind in WORKLOADS else kind)
        if event.type == DELETED:
            self.forget_undecodable(key, kind)
        else:
            self._undecodable[key][kind] = msgspec.structs.replace(undecodable, why=why)
        self._on_change(key, Trigger.SPEC_CHANGED)

    def _on_watch_problem(self, kind: str, problem: Problem | None) -> None:
        """Reconciles every owner that may have such natives, so that their status shows the problem, or its end."""
        if problem and kind not in OPTIONAL_NATIVES:
            log.warning("watch rejected", kind=kind, why=problem.what)
        if self._complete and kind not in CUSTOM_RESOURCES:
            affected = PinterestTrainingJob if kind in OPTIONAL_NATIVES else CustomResource
            for owner in [each for each in self._all_owners() if isinstance(each, affected)]:
                self._on_change(key_of(owner), Trigger.CONTEXT_CHANGED)

    def _on_context_event(self, event: Event[CustomResource]) -> None:
        """Takes in an event about what owners share. Before the cache is complete nothing was planned."""
        is_affected = self._context.observe(event, self._clock.now())
        if self._complete and is_affected:
            # An ordered dict and no set: the simulator needs the same order in every run.
            for key in dict.fromkeys(key_of(each) for each in self._all_owners() if is_affected(each)):
                self._on_change(key, Trigger.CONTEXT_CHANGED)

    def _enqueue_rolling_runtime(self) -> None:
        """Reconciles the rolling runtime, as its next wave depends on the health of the workloads.

        The first change is passed on at once, because the last workload of a wave often comes alone and the next wave
        waits for it. Further changes within the interval are merged.
        """
        if self._context.rolling_runtime and self._roll_timer is None:
            left = self._roll_enqueued_at + ROLL_COUNT_INTERVAL_S - self._clock.monotonic()
            self._roll_timer = asyncio.get_running_loop().call_later(max(0.0, left), self._on_roll_timer)

    def _on_roll_timer(self) -> None:
        self._roll_timer, self._roll_enqueued_at = None, self._clock.monotonic()
        if self._context.rolling_runtime:
            self._on_change(key_of(self._context.rolling_runtime), Trigger.CONTEXT_CHANGED)


def _unwatchable_problem(kind: str, problem: Problem) -> Problem:
    if problem.reason is KIND_NOT_SERVED:
        return problem._replace(next=f"install what provides {kind}; the operator finds it without a restart")
    note = f"running pods are not affected; no {kind} is changed until it can be watched again"
    return Problem(RIGHTS_MISSING, problem.what, problem.where, note, problem.next or "pin up")


def _has_ingress(owner: CustomResource) -> bool:
    return isinstance(owner, PinterestService) and owner.spec.has_ingress


def _spec_changed(event: Event[Any]) -> bool:
    """Whether the owner has a spec that no pass has reported on yet, or was deleted."""
    owner = event.object
    return event.type == DELETED or owner.status.observed_generation != owner.metadata.generation


def key_of(owner: CustomResource) -> Key:
    metadata = owner.metadata
    return Key(metadata.namespace, metadata.name, "" if isinstance(owner, Workload) else owner.kind)


def _owner_key(metadata: Metadata) -> Key:
    """The key of a native's or a pod's owner, by labels. Without a workload label it belongs to a project."""
    labels = metadata.labels
    if WORKLOAD_LABEL in labels:
        return Key(metadata.namespace, labels[WORKLOAD_LABEL])
    return Key("", labels.get(PROJECT_LABEL, ""), labels.get(KIND_LABEL, ""))


def _update(cache: defaultdict[Key, dict[Any, Any]], key: Key, name: Any, event: Event[Any]) -> None:
    """Stores or removes an object. Keys without objects are removed, so that the cache does not grow for ever."""
    if event.type != DELETED:
        cache[key][name] = event.object
        return
    cache[key].pop(name, None)
    if not cache[key]:
        del cache[key]
