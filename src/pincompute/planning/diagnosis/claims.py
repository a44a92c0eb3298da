"""Why a claim has no volume, or its volume cannot be reached: what it demands, and which of that nothing meets."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import NamedTuple, TypeVar

from pincompute.api.structs import LenientStruct, Metadata
from pincompute.objects.content import Object
from pincompute.objects.label_selector import expression_matches, selector_matches
from pincompute.objects.quantity import format_bytes, parse_quantity
from pincompute.planning.diagnosis.capacity import Node
from pincompute.planning.diagnosis.excerpts import join_first_few, join_with_and

_DEFAULT_CLASS = "storageclass.kubernetes.io/is-default-class"
NO_PROVISIONER = "kubernetes.io/no-provisioner"
"""Provisioner of a class with volumes that are made by hand."""

_Named = TypeVar("_Named", "Volume", "StorageClass")


class _Requests(LenientStruct, frozen=True):
    requests: dict[str, int | str] = {}


class _ClaimSpec(LenientStruct, frozen=True):
    access_modes: list[str] = []
    resources: _Requests = _Requests()
    selector: Object = {}
    storage_class_name: str | None = None
    volume_mode: str = "Filesystem"
    volume_name: str = ""


class _Phase(LenientStruct, frozen=True):
    phase: str = ""


class Claim(LenientStruct, frozen=True):
    """A PersistentVolumeClaim."""

    metadata: Metadata
    spec: _ClaimSpec = _ClaimSpec()
    status: _Phase = _Phase()

    @property
    def size(self) -> Fraction:
        return parse_quantity(self.spec.resources.requests.get("storage", "0"))


class _ClaimReference(LenientStruct, frozen=True):
    name: str = ""
    namespace: str = ""


class _NodeAffinity(LenientStruct, frozen=True):
    required: Object = {}


class _VolumeSpec(LenientStruct, frozen=True):
    access_modes: list[str] = []
    capacity: dict[str, int | str] = {}
    claim_ref: _ClaimReference | None = None
    node_affinity: _NodeAffinity = _NodeAffinity()
    storage_class_name: str = ""
    volume_mode: str = "Filesystem"


class Volume(LenientStruct, frozen=True):
    """A PersistentVolume."""

    metadata: Metadata
    spec: _VolumeSpec = _VolumeSpec()
    status: _Phase = _Phase()

    @property
    def size(self) -> Fraction:
        return parse_quantity(self.spec.capacity.get("storage", "0"))

    def may_be_bound_to(self, claim: Claim) -> bool:
        reference, metadata = self.spec.claim_ref, claim.metadata
        return reference is None or (reference.namespace, reference.name) == (metadata.namespace, metadata.name)


class StorageClass(LenientStruct, frozen=True):
    metadata: Metadata
    provisioner: str = ""

    @property
    def is_default(self) -> bool:
        return self.metadata.annotations.get(_DEFAULT_CLASS) == "true"


class StorageEvidence(NamedTuple):
    """The claims of a pod, and what the cluster has for them."""

    names: Sequence[str] = ()
    """Claims that the pod mounts."""
    claims: Sequence[Claim] = ()
    volumes: Sequence[Volume] = ()
    classes: Sequence[StorageClass] = ()
    nodes: Sequence[Node] = ()

    def class_of(self, claim: Claim) -> str | None:
        """The class that the claim names, or the default one; None if it names none, and there is no default."""
        named = claim.spec.storage_class_name
        return next((each.metadata.name for each in self.classes if each.is_default), None) if named is None else named


def explain_claims(evidence: StorageEvidence) -> str:
    """One line for the first claim that keeps the pod from a node; empty if the claims do not explain it."""
    known = {each.metadata.name: each for each in evidence.claims}
    for name in evidence.names:
        claim = known.get(name)
        if claim is None:
            return f"claim {name} does not exist"
        found = _explain_bound(claim, evidence) if claim.status.phase == "Bound" else _explain_pending(claim, evidence)
        if found:
            return f"claim {name} {found}"
    return ""


def unbound_claim(evidence: StorageEvidence) -> Claim | None:
    """The first claim of the pod that has no volume; None if one of them does not exist."""
    known = {each.metadata.name: each for each in evidence.claims}
    found = [known.get(each) for each in evidence.names]
    return None if None in found else next((each for each in found if each and each.status.phase != "Bound"), None)


def absent_claim(evidence: StorageEvidence) -> str:
    """The first claim of the pod that does not exist; empty if all exist."""
    known = {each.metadata.name for each in evidence.claims}
    return next((each for each in evidence.names if each not in known), "")


def _explain_bound(claim: Claim, evidence: StorageEvidence) -> str:
    volume = _named(evidence.volumes, claim.spec.volume_name)
    if volume is None:
        return f"is bound to volume {claim.spec.volume_name}, which does not exist any more"
    terms: list[Object] = volume.spec.node_affinity.required.get("nodeSelectorTerms", [])
    if not terms:
        return ""
    where = join_with_and(_expression_text(each) for term in terms for each in term.get("matchExpressions", ()))
    near = [each for each in evidence.nodes if any(_term_matches(term, each) for term in terms)]
    if not near:
        return f"is on volume {volume.metadata.name}, which only nodes with {where} reach, and there is none"
    names = join_first_few(sorted(each.metadata.name for each in near))
    return f"is on volume {volume.metadata.name}, which only {names} can reach ({where})"


def _explain_pending(claim: Claim, evidence: StorageEvidence) -> str:
    spec = claim.spec
    if spec.volume_name:
        return _explain_named_volume(claim, evidence)
    class_name = evidence.class_of(claim)
    if class_name is None:
        return f"names no storage class, and the cluster has no default one; {_classes_text(evidence.classes)}"
    storage_class = _named(evidence.classes, class_name)
    of_class = [each for each in evidence.volumes if each.spec.storage_class_name == class_name]
    if storage_class is None and class_name and not of_class:
        return f"names storage class {class_name}, which does not exist; {_classes_text(evidence.classes)}"
    if storage_class is None or storage_class.provisioner == NO_PROVISIONER:
        return _explain_no_match(claim, of_class)
    return f"waits for provisioner {storage_class.provisioner} of storage class {class_name} to create its volume"


def _explain_named_volume(claim: Claim, evidence: StorageEvidence) -> str:
    name = claim.spec.volume_name
    volume = _named(evidence.volumes, name)
    if volume is None:
        return f"names volume {name}, which does not exist"
    # The other claim is not named: it may be of another project.
    return "" if volume.may_be_bound_to(claim) else f"names volume {name}, which belongs to another claim"


def _explain_no_match(claim: Claim, of_class: Sequence[Volume]) -> str:
    """The first demand that no free volume of the class meets, among those that meet the demands before it."""
    class_text = f"class {claim.spec.storage_class_name}" if claim.spec.storage_class_name else "no class"
    left = [each for each in of_class if each.status.phase != "Released" and each.may_be_bound_to(claim)]
    if not left:
        return f"waits for a volume of {class_text}: there is no free one, and none is made automatically"
    modes = set(claim.spec.access_modes)
    fitting = [each for each in left if modes <= set(each.spec.access_modes)]
    if not fitting:
        offered = join_with_and(sorted({mode for each in left for mode in each.spec.access_modes}))
        return f"requires {join_with_and(sorted(modes))}, and the free volumes of {class_text} allow {offered}"
    left, fitting = fitting, [each for each in fitting if each.spec.volume_mode == claim.spec.volume_mode]
    if not fitting:
        return f"requires a volume of mode {claim.spec.volume_mode}, and the free ones are {left[0].spec.volume_mode}"
    left, fitting = fitting, [each for each in fitting if selector_matches(claim.spec.selector, each.metadata.labels)]
    if claim.spec.selector and not fitting:
        return f"selects volumes by labels that none of the {len(left)} free ones of {class_text} has"
    left = fitting or left
    largest = max(left, key=lambda each: (each.size, each.metadata.name))
    if largest.size >= claim.size:
        return ""
    has = format_bytes(largest.size)
    return f"requests {format_bytes(claim.size)}, and the largest free volume of {class_text} has {has}"


def _classes_text(classes: Sequence[StorageClass]) -> str:
    if not classes:
        return "it has no storage class"
    names = [f"{each.metadata.name}{' (default)' if each.is_default else ''}" for each in classes]
    return f"the classes are {join_first_few(sorted(names))}" if len(names) > 1 else f"the only class is {names[0]}"


def _term_matches(term: Object, node: Node) -> bool:
    return all(expression_matches(each, node.metadata.labels) for each in term.get("matchExpressions", ()))


def _expression_text(expression: Object) -> str:
    values = [str(each) for each in expression.get("values", ())]
    key = str(expression.get("key", ""))
    return f"{key}={' or '.join(values)}" if expression.get("operator") == "In" else key


def _named(items: Sequence[_Named], name: str) -> _Named | None:
    return next((each for each in items if each.metadata.name == name), None)
