"""Edits of the file with which a node accepts a pod that none accepts: labels, affinity and tolerations."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from typing import NamedTuple

import msgspec

from pincompute.api.names import GPU_TYPE_LABEL
from pincompute.api.workload import Workload
from pincompute.objects.content import Object
from pincompute.objects.label_selector import expression_matches
from pincompute.planning.diagnosis.capacity import (
    Node,
    PodRequirements,
    eligible_nodes,
    labels_match,
    node_affinity_expressions,
)
from pincompute.planning.edit_commands import edit_command, pod_path, pod_spec


class _Edit(NamedTuple):
    """The pod after the edits so far, and the edits."""

    pod: PodRequirements
    settings: Mapping[str, str | int] = {}
    removals: tuple[str, ...] = ()

    def with_selector(self, key: str, value: str | None) -> _Edit:
        selector = {name: each for name, each in self.pod.spec.node_selector.items() if name != key}
        path = pod_path("nodeSelector", key)
        if value is None:
            return _Edit(_replaced(self.pod, node_selector=selector), self.settings, (*self.removals, path))
        selector[key] = value
        return _Edit(_replaced(self.pod, node_selector=selector), {**self.settings, path: value}, self.removals)


def placement_edit(owner: Workload, pod: PodRequirements, nodes: Sequence[Node]) -> str:
    """The command after which a node accepts the pod by its labels and taints; empty if the file cannot change that.

    First every demand that no node meets is dropped or corrected; a misspelt value becomes the one that nodes have. If
    nodes still have not all labels at once, the first label is dropped whose absence suffices.
    """
    if not nodes or eligible_nodes(pod, nodes):
        return ""
    edit = _with_known_affinity(owner, _with_known_labels(owner, _Edit(pod), nodes), nodes)
    if not eligible_nodes(edit.pod, nodes):
        further = (*_with_one_label_less(owner, edit), _with_tolerated_values(owner, edit, nodes))
        edit = next((each for each in further if eligible_nodes(each.pod, nodes)), edit)
    return edit_command(owner, edit.settings, edit.removals)


def gpu_type_edit(owner: Workload, nodes: Sequence[Node]) -> str:
    """The command that asks for the GPU type of most nodes; empty if none has a type, or the roles have several."""
    present = Counter(each.metadata.labels[GPU_TYPE_LABEL] for each in nodes if GPU_TYPE_LABEL in each.metadata.labels)
    wanted = owner.spec.gpu_types
    if len(wanted) != 1 or getattr(owner.spec, "gpu_type", "") != wanted[0] or wanted[0] in present:
        return ""
    if not present:
        return edit_command(owner, removals=["gpuType"])
    return edit_command(owner, {"gpuType": _nearest(wanted[0], present)})


def _with_known_labels(owner: Workload, edit: _Edit, nodes: Sequence[Node]) -> _Edit:
    for key, value in sorted(_own_selector(owner).items()):
        present = Counter(each.metadata.labels[key] for each in nodes if key in each.metadata.labels)
        if value not in present:
            edit = edit.with_selector(key, _nearest(value, present) if present else None)
    return edit


def _with_known_affinity(owner: Workload, edit: _Edit, nodes: Sequence[Node]) -> _Edit:
    """Without a node affinity of the file that holds for no node."""
    if not pod_spec(owner).get("affinity", {}).get("nodeAffinity"):
        return edit
    expressions = node_affinity_expressions(edit.pod)
    is_met = all(any(expression_matches(each, node.metadata.labels) for node in nodes) for each in expressions)
    if is_met and any(labels_match(edit.pod, node) for node in nodes):
        return edit
    affinity = {key: value for key, value in edit.pod.spec.affinity.items() if key != "nodeAffinity"}
    removals = (*edit.removals, pod_path("affinity", "nodeAffinity"))
    return _Edit(_replaced(edit.pod, affinity=affinity), edit.settings, removals)


def _with_one_label_less(owner: Workload, edit: _Edit) -> list[_Edit]:
    kept = (key for key in sorted(_own_selector(owner)) if key in edit.pod.spec.node_selector)
    return [edit.with_selector(key, None) for key in kept if pod_path("nodeSelector", key) not in edit.settings]


def _with_tolerated_values(owner: Workload, edit: _Edit, nodes: Sequence[Node]) -> _Edit:
    """With the values that taints have in the place of those that the file tolerates of the same keys."""
    taints = {
        taint.key: taint
        for node in nodes
        if not node.lost and not node.spec.unschedulable and labels_match(edit.pod, node)
        for taint in node.spec.taints
    }
    settings = dict(edit.settings)
    tolerations: list[Object] = []
    own = [each for each in pod_spec(owner).get("tolerations", ()) if each.get("operator", "Equal") == "Equal"]
    for toleration in edit.pod.spec.tolerations:
        taint = taints.get(toleration.get("key", ""))
        if toleration in own and taint and toleration.get("effect") in {None, "", taint.effect}:
            settings[pod_path("tolerations", taint.key, "value")] = taint.value
            tolerations.append({**toleration, "value": taint.value})
        else:
            tolerations.append(toleration)
    return _Edit(_replaced(edit.pod, tolerations=tolerations), settings, edit.removals)


def _own_selector(owner: Workload) -> dict[str, str]:
    """The labels that the file requires, without those that the platform adds."""
    selector: dict[str, str] = pod_spec(owner).get("nodeSelector") or {}
    return selector


def _nearest(value: str, present: Counter[str]) -> str:
    """The most similar value, or else the most frequent one."""
    similar = get_close_matches(value, sorted(present), n=1)
    return similar[0] if similar else min(present, key=lambda each: (-present[each], each))


def _replaced(pod: PodRequirements, **fields: object) -> PodRequirements:
    return msgspec.structs.replace(pod, spec=msgspec.structs.replace(pod.spec, **fields))
