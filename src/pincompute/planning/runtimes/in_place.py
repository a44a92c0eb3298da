"""In-place updates: if only sidecar images change, pods stay and the kubelet restarts just those containers.

In: a `TemplateChange`, which has the pods and the template they should have. Out: an `InPlaceUpdate`, which has the
native object as it should be written in this pass, and patches for some pods. If the change cannot be done in place,
the object is the wanted one, and Kubernetes replaces the pods.

The difficulty is that Kubernetes would replace the pods anyway: its controllers compare each pod with the template it
was created from, and know nothing of in-place updates. The controller of the pods is therefore prepared before it sees
the new template:

- A Deployment is paused. Then the template of its ReplicaSet is patched, and only after that the Deployment gets the
  new template. It finds a ReplicaSet with that template, keeps it, and creates no other.
- A StatefulSet is held back by its partition while it gets the new template. Then each pod is patched together with
  its label `controller-revision-hash`, so that it counts as updated.
- Jobs and Kubeflow's jobs have immutable templates. Only their pods are patched, including those created later.

Two invariants. First, the hold is released only after the controller has observed the preceding write
(`generation_observed`); otherwise it would act on what it saw before and replace the pods. Second, no progress is
stored outside the objects: the next action follows from the labels of pods and their controllers, so that a pass after
a crash continues at the same point.

The first updated pod is observed for a few seconds before others follow, so that a sidecar that crashes at once reaches
no further pod of the workload.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from pincompute.api.names import (
    IN_PLACE_UPDATE_ANNOTATION,
    PARTS_ANNOTATION,
    TEMPLATE_HASH_LABEL,
)
from pincompute.api.runtime import Roll
from pincompute.objects.content import Object
from pincompute.objects.number_sets import scaled_value
from pincompute.planning.observed_pods import Pod, PreviousImage
from pincompute.planning.pods.pod import BuiltTemplate
from pincompute.planning.snapshot import Native, Snapshot
from pincompute.planning.steps import EMPTY_STRING_MAP, PatchImages, SidecarImage, StringMap

_DEPLOYMENT_REVISION_ANNOTATION = "deployment.kubernetes.io/revision"
_CONTROLLER_REVISION_LABEL = "controller-revision-hash"
FIRST_WATCH_S = 5.0
"""Time for which the first updated pod is observed before others follow."""
PROVEN_WATCH_S = 2.0
"""The same if the runtime already runs well in other workloads, so that only this one could have a problem with it."""


class InPlaceUpdate(NamedTuple):
    """Native object to write in this pass, and patches of pods or of a ReplicaSet."""

    native: Object
    steps: tuple[PatchImages, ...] = ()
    rollout_held: bool = False
    """True while Kubernetes' own rollout is held back until the pods, or their ReplicaSet, are patched."""
    recheck_after_s: float | None = None
    """Seconds until the observation of the first updated pod ends."""


class TemplateChange(NamedTuple):
    """Change of the pods of one controller to a new template."""

    snapshot: Snapshot
    built: BuiltTemplate
    pods: tuple[Pod, ...]
    replicas: int
    """Wanted number of replicas."""
    unavailable: int | str
    """Number or percentage of replicas that may be unavailable according to the workload."""

    @property
    def max_unavailable(self) -> int:
        """Limit of unavailable replicas, by both the workload and the roll; 0 if the workload allows none."""
        own = scaled_value(self.unavailable, self.replicas, up=True)
        runtime = self.snapshot.runtimes.by_number.get(self.built.runtime)
        roll = (runtime.spec.roll if runtime else None) or Roll()
        return min(own, max(1, scaled_value(roll.unavailable, self.replicas, up=False)))

    @property
    def is_possible(self) -> bool:
        return bool(self.built.sidecars) and self.max_unavailable > 0

    @property
    def former(self) -> tuple[Pod, ...]:
        return tuple(each for each in self.pods if each.template_hash != self.built.template_hash)

    @property
    def watch_left_s(self) -> float | None:
        """Seconds until an updated pod has been observed long enough; None if one has, or if none is left to update."""
        return self.unproven_left_s if self.updatable else None

    @property
    def unproven_left_s(self) -> float | None:
        """The same, whether or not there are pods left to update."""
        now, runtimes = self.snapshot.now, self.snapshot.runtimes
        watch_s = PROVEN_WATCH_S if runtimes.is_proven(self.built.runtime) else FIRST_WATCH_S
        running_s = [
            (now - each.sidecars_restarted_at).total_seconds() for each in self.updated if each.sidecars_restarted_at
        ]
        return max(0.0, watch_s - max(running_s)) or None if running_s else None

    @property
    def batch_size(self) -> int:
        """Replicas that may be unavailable now: one for the first pod, none while that is observed, then the limit."""
        if not self.updated:
            return min(1, self.max_unavailable)
        is_proven = self.watch_left_s is None and any(each.ready for each in self.updated)
        return self.max_unavailable if is_proven else 0

    @property
    def updated(self) -> tuple[Pod, ...]:
        return tuple(
            each for each in self.pods if each.updated_in_place and each.template_hash == self.built.template_hash
        )

    @property
    def updatable(self) -> tuple[Pod, ...]:
        """Former pods that can be updated in place."""
        return tuple(each for each in self.former if each.in_place_hash == self.built.in_place_hash)


def update_deployment(change: TemplateChange, wanted: Object, paused: Object) -> InPlaceUpdate:
    """Patch the ReplicaSet while the Deployment is paused, then release the Deployment and patch the pods."""
    deployment = change.snapshot.owned_native("Deployment")
    replica_sets = _replica_sets(change, deployment) if deployment else []
    if deployment is None or not replica_sets or not change.is_possible:
        return InPlaceUpdate(wanted)
    is_paused = deployment.has_content(paused)
    patched = next((each for each in replica_sets if each.template_hash == change.built.template_hash), None)
    if patched is None:
        # Until the Deployment's controller has observed the pause, it would undo the patch with another ReplicaSet.
        may_patch = is_paused and deployment.generation_observed
        newest = max(replica_sets, key=_deployment_revision)
        steps = (_replica_set_patch(change.built, newest),) if may_patch else ()
        return InPlaceUpdate(paused, steps, rollout_held=True)
    if is_paused and not patched.generation_observed:
        return InPlaceUpdate(paused, rollout_held=True)
    return InPlaceUpdate(wanted, image_patches(change), recheck_after_s=change.watch_left_s)


def update_stateful_set(change: TemplateChange, wanted: Object, held: Object) -> InPlaceUpdate:
    """Patch the pods, with the name of the newest revision, while the partition of the StatefulSet holds it back."""
    stateful_set = change.snapshot.owned_native("StatefulSet")
    if stateful_set is None or not change.is_possible or len(change.updatable) < len(change.former):
        return InPlaceUpdate(wanted)
    is_held = stateful_set.has_content(held)
    status = stateful_set.status
    revision_known = is_held and stateful_set.generation_observed and status.update_revision != ""
    if not change.former:
        # Released too early, the StatefulSet's controller would replace pods before it has observed their new label.
        waits = is_held and not (revision_known and status.updated_replicas >= status.replicas)
        return InPlaceUpdate(held, rollout_held=True) if waits else InPlaceUpdate(wanted)
    steps = image_patches(change, {_CONTROLLER_REVISION_LABEL: status.update_revision}) if revision_known else ()
    return InPlaceUpdate(held, steps, rollout_held=True, recheck_after_s=change.watch_left_s)


def update_running_work(changes: Iterable[TemplateChange]) -> InPlaceUpdate:
    """Patch the pods of Jobs, including those created later, because templates of Jobs are immutable.

    The changes are done one after the other, so that a failing sidecar reaches the pods of one Job only.
    """
    changes = [each for each in changes if each.is_possible]
    watches_s = [each.unproven_left_s for each in changes if each.updated]
    if watches_s and all(watches_s):
        return InPlaceUpdate({}, recheck_after_s=min(each for each in watches_s if each))
    for change in changes:
        steps = image_patches(change)
        if steps or change.updatable or not all(pod.ready for pod in change.updated):
            return InPlaceUpdate({}, steps, recheck_after_s=change.watch_left_s)
    return InPlaceUpdate({})


def image_patches(change: TemplateChange, labels: StringMap = EMPTY_STRING_MAP) -> tuple[PatchImages, ...]:
    """Patch all pods that are not ready, which costs no availability, and ready ones within the batch size."""
    ordered = sorted(change.updatable, key=lambda each: each.metadata.name)
    unavailable = change.replicas - sum(each.ready for each in change.pods)
    not_ready = [each for each in ordered if not each.ready]
    ready = [each for each in ordered if each.ready][: max(0, change.batch_size - unavailable)]
    return tuple(image_patch(change.built, each, labels) for each in (*not_ready, *ready))


def image_patch(built: BuiltTemplate, pod: Pod, labels: StringMap = EMPTY_STRING_MAP) -> PatchImages:
    """Patch of one pod: images that differ, the new template hash, and the former images of running sidecars."""
    wanted = {each.name: each.image for each in _sidecar_images(built)}
    changed = tuple(
        SidecarImage(index, container.name, wanted[container.name])
        for index, container in enumerate(pod.spec.init_containers)
        if container.name in wanted and container.image != wanted[container.name]
    )
    annotations = {
        PARTS_ANNOTATION: " ".join(built.parts),
        IN_PLACE_UPDATE_ANNOTATION: " ".join(map(str, _previous_images(pod, changed))),
    }
    return PatchImages(
        "Pod",
        pod.metadata.name,
        pod.metadata.uid,
        changed,
        {**labels, TEMPLATE_HASH_LABEL: built.template_hash},
        annotations,
    )


def _previous_images(pod: Pod, changed: Iterable[SidecarImage]) -> Iterator[PreviousImage]:
    """Images that are still running. After two changes in a row this may be the one before the first."""
    recorded = {
        each.name: each
        for each in PreviousImage.parse_all(pod.metadata.annotations.get(IN_PLACE_UPDATE_ANNOTATION, ""))
    }
    running = {each.name: each for each in pod.status.init_container_statuses if each.state.running}
    images = {each.name: each.image for each in pod.spec.init_containers}
    for sidecar in changed:
        container = running.get(sidecar.name)
        if container is None:
            continue
        previous = recorded.get(sidecar.name)
        if previous and container.restart_count <= previous.restart_count:
            yield previous
        else:
            yield PreviousImage(sidecar.name, container.restart_count, images[sidecar.name])


def _replica_set_patch(built: BuiltTemplate, replica_set: Native) -> PatchImages:
    """Patch of a ReplicaSet's template with all sidecar images, because its present ones are not cached."""
    metadata = replica_set.metadata
    return PatchImages(
        replica_set.kind,
        metadata.name,
        metadata.uid,
        _sidecar_images(built),
        {TEMPLATE_HASH_LABEL: built.template_hash},
        {PARTS_ANNOTATION: " ".join(built.parts)},
    )


def _sidecar_images(built: BuiltTemplate) -> tuple[SidecarImage, ...]:
    containers: Sequence[Object] = built.template["spec"]["initContainers"]
    return tuple(
        SidecarImage(index, container["name"], container["image"])
        for index, container in enumerate(containers)
        if container["name"] in built.sidecars
    )


def _replica_sets(change: TemplateChange, deployment: Native) -> list[Native]:
    """ReplicaSets of the Deployment that differ from the new template in sidecar images only."""
    return [
        each
        for each in change.snapshot.natives
        if each.kind == "ReplicaSet"
        and each.metadata.controller_uid == deployment.metadata.uid
        and each.in_place_hash == change.built.in_place_hash
    ]


def _deployment_revision(replica_set: Native) -> tuple[int, str]:
    return replica_set.int_annotation(_DEPLOYMENT_REVISION_ANNOTATION), replica_set.metadata.name
