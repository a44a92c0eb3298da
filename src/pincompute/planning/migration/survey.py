"""Import of many objects at once: which come over cleanly, which with changes, and which not, and why."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import msgspec

from pincompute.api.pod_template import PodTemplate
from pincompute.api.type_errors import type_errors
from pincompute.base.problem import Problem, Refused, Where
from pincompute.base.reasons import CANNOT_IMPORT
from pincompute.objects.content import Object, object_label
from pincompute.objects.owners import controller_uid
from pincompute.planning.migration.changes import Change, noticeable_changes
from pincompute.planning.migration.native_import import API_VERSIONS, import_native
from pincompute.planning.migration.related_objects import RelatedObjects, pod_template_of
from pincompute.planning.migration.workload_import import WorkloadImport

RELATED_KINDS = frozenset(
    {"Service", "Ingress", "PodDisruptionBudget", "HorizontalPodAutoscaler", "ServiceAccount", "ConfigMap"}
)
_MAX_REASON_CHARS = 200


class SurveyRow(NamedTuple):
    """The import of one object."""

    namespace: str
    label: str
    """`Deployment/web`."""
    imported: WorkloadImport | None = None
    """None if no file can represent the object."""
    changes: tuple[Change, ...] = ()
    problems: tuple[Problem, ...] = ()

    @property
    def outcome(self) -> str:
        if self.imported is None:
            return "impossible"
        return "changed" if self.changes or self.problems else "clean"

    @property
    def why(self) -> str:
        """Keywords of the changes, or the cause of the impossibility."""
        if self.imported is None:
            return self.problems[0].what[:_MAX_REASON_CHARS]
        keywords = sorted({each.keyword for each in self.changes})
        return ", ".join((*keywords, *(each.what[:_MAX_REASON_CHARS] for each in self.problems)))


def survey_objects(objects: Sequence[Object]) -> tuple[SurveyRow, ...]:
    """Imports every object with pods, in the order of the objects. One that cannot be imported stops no other.

    Objects that another one of them controls, such as the Jobs of a CronJob, come over with it.
    """
    uids = {each["metadata"].get("uid") for each in objects} - {None}
    wanted = [each for each in objects if each["kind"] in API_VERSIONS and controller_uid(each) not in uids]
    by_namespace: dict[str, list[Object]] = {}
    for each in objects:
        if each["kind"] in RELATED_KINDS:
            by_namespace.setdefault(each["metadata"]["namespace"], []).append(each)
    rows = [survey_object(each, by_namespace.get(each["metadata"]["namespace"], ())) for each in wanted]
    return tuple(_without_name_conflicts(rows))


def survey_object(native: Object, others: Iterable[Object], name: str = "", port: int = 0) -> SurveyRow:
    """Imports one object of a file, whose content may be of any shape."""
    namespace, label = native["metadata"]["namespace"], object_label(native)
    try:
        _require_known_shape(native)
        imported = import_native(RelatedObjects.of(native, others), name, port)
    except Refused as refused:
        return SurveyRow(namespace, label, problems=refused.problems)
    except (AttributeError, ArithmeticError, LookupError, TypeError, ValueError, msgspec.MsgspecError) as error:
        # A file from elsewhere was checked by no API server, and each of its fields may have any type.
        what = f"{label} is not valid: {type(error).__name__} in a field that an API server would check"
        next_ = "kubectl apply --dry-run=server -f FILE"
        return SurveyRow(
            namespace, label, problems=(Problem(CANNOT_IMPORT, what, Where(object=namespace), next=next_),)
        )
    return SurveyRow(namespace, label, imported, noticeable_changes(imported.differences), imported.blockers)


def summary_counts(rows: Iterable[SurveyRow]) -> str:
    """`12 clean, 3 changed, 1 impossible`."""
    counts = Counter(each.outcome for each in rows)
    return ", ".join(f"{counts[outcome]} {outcome}" for outcome in ("clean", "changed", "impossible"))


def _require_known_shape(native: Object) -> None:
    version = API_VERSIONS[native["kind"]]
    where = Where(object=native["metadata"]["namespace"])
    if native.get("apiVersion") != version:
        what = f"apiVersion of {object_label(native)} is {str(native.get('apiVersion'))[:_MAX_REASON_CHARS]!r}"
        next_ = f"kubectl convert -f FILE --output-version {version}"
        raise Refused(Problem(CANNOT_IMPORT, what, where, f"the import reads {version}", next_))
    errors = list(type_errors(PodTemplate, pod_template_of(native), ("spec", "template")))
    if errors:
        path = ".".join(map(str, errors[0].path))[:_MAX_REASON_CHARS]
        what = f"{path} of {object_label(native)}: {errors[0].what[:_MAX_REASON_CHARS]}"
        raise Refused(Problem(CANNOT_IMPORT, what, where, next="kubectl apply --dry-run=server -f FILE"))


def _without_name_conflicts(rows: Iterable[SurveyRow]) -> Iterator[SurveyRow]:
    """A name of a workload is unique over all kinds; of two objects with the same one, the second needs another."""
    taken: dict[tuple[str, str], str] = {}
    for row in rows:
        if row.imported is None:
            yield row
            continue
        name = row.imported.workload.metadata.name
        first = taken.setdefault((row.namespace, name), row.label)
        if first == row.label:
            yield row
            continue
        what = f"the name {name} is already that of {first}"
        next_ = f"pin import {row.label.lower()} --as OTHER"
        yield SurveyRow(
            row.namespace, row.label, problems=(Problem(CANNOT_IMPORT, what, Where(object=row.namespace), next=next_),)
        )
