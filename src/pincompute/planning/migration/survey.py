"""Import of many objects at once: which come over cleanly, which with changes, and which not, and why."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import count
from typing import NamedTuple

import msgspec

from pincompute.api.job_set import PinterestJobSet
from pincompute.api.pod_template import PodTemplate
from pincompute.api.type_errors import type_errors
from pincompute.base.problem import Problem, Refused, Where
from pincompute.base.reasons import CANNOT_IMPORT
from pincompute.objects.content import Object, object_label
from pincompute.objects.owners import controller_uid
from pincompute.planning.migration.changes import Change, noticeable_changes
from pincompute.planning.migration.job_import import import_job
from pincompute.planning.migration.native_import import API_VERSIONS, import_native
from pincompute.planning.migration.related_objects import RelatedObjects, pod_template_of
from pincompute.planning.migration.restricted import restrict_native
from pincompute.planning.migration.sibling_jobs import merge_siblings, sibling_groups, sibling_key, sibling_name
from pincompute.planning.migration.workload_import import WorkloadImport

RELATED_KINDS = frozenset(
    {"Service", "Ingress", "PodDisruptionBudget", "HorizontalPodAutoscaler", "ServiceAccount", "ConfigMap"}
)
_MAX_REASON_CHARS = 200
_MALFORMED = (AttributeError, ArithmeticError, LookupError, TypeError, ValueError, msgspec.MsgspecError)
"""Errors of a file from elsewhere: no API server has checked it, and each of its fields may have any type."""


class SurveyRow(NamedTuple):
    """The import of one object."""

    namespace: str
    label: str
    """`Deployment/web`."""
    imported: WorkloadImport | None = None
    """None if no file can represent the object."""
    changes: tuple[Change, ...] = ()
    problems: tuple[Problem, ...] = ()
    apart: str = ""
    """Cause for which it is not one of the tasks of a job set, although it is like other Jobs."""

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
        causes = [each.what for each in self.problems] + ([f"apart: {self.apart}"] if self.apart else [])
        return ", ".join((*keywords, *(each[:_MAX_REASON_CHARS] for each in causes)))


def survey_objects(
    objects: Sequence[Object],
    on_progress: Callable[[int, int], None] = lambda _done, _total: None,
    *,
    restricted: bool = False,
) -> tuple[SurveyRow, ...]:
    """Imports every object with pods, in the order of the objects. One that cannot be imported stops no other.

    Objects that another one of them controls, such as the Jobs of a CronJob, come over with it. Jobs of one template
    become one job set, in place of the first of them. `on_progress` is called with the number of objects that are
    done, and with that of all. `restricted` replaces the permissive defaults of Kubernetes.
    """
    uids = {each["metadata"].get("uid") for each in objects} - {None}
    wanted = [each for each in objects if each["kind"] in API_VERSIONS and controller_uid(each) not in uids]
    by_namespace: dict[str, list[Object]] = {}
    for each in objects:
        if each["kind"] in RELATED_KINDS:
            by_namespace.setdefault(each["metadata"]["namespace"], []).append(each)
    siblings = _survey_siblings(wanted, by_namespace, restricted)
    rows: dict[int, SurveyRow] = {}
    for number, each in enumerate(wanted):
        on_progress(number, len(wanted))
        row = siblings.get(id(each))
        if row is None or row.imported is None:
            others = by_namespace.get(each["metadata"]["namespace"], ())
            row = survey_object(each, others, restricted=restricted)._replace(apart=row.apart if row else "")
            rows[id(each)] = row
        else:
            rows.setdefault(id(row), row)
    return tuple(_without_name_conflicts(rows.values()))


def survey_object(
    native: Object, others: Iterable[Object], name: str = "", port: int = 0, *, restricted: bool = False
) -> SurveyRow:
    """Imports one object of a file, whose content may be of any shape."""
    namespace, label = native["metadata"]["namespace"], object_label(native)
    try:
        _require_known_shape(native)
        found = RelatedObjects.of(restrict_native(native) if restricted else native, others)
        imported = import_native(found, name, port)
    except Refused as refused:
        return SurveyRow(namespace, label, problems=refused.problems)
    except _MALFORMED as error:
        what = f"{label} is not valid: {type(error).__name__} in a field that an API server would check"
        next_ = "kubectl apply --dry-run=server -f FILE"
        return SurveyRow(
            namespace, label, problems=(Problem(CANNOT_IMPORT, what, Where(object=namespace), next=next_),)
        )
    return SurveyRow(namespace, label, imported, noticeable_changes(imported.differences), imported.blockers)


def _survey_siblings(
    wanted: Sequence[Object], by_namespace: Mapping[str, Sequence[Object]], restricted: bool
) -> dict[int, SurveyRow]:
    """The row of each Job that is like others, by the identity of the Job; without an import if it stays apart."""
    groups = sibling_groups((each for each in wanted if each["kind"] == "Job"), _checked_sibling_key)
    grouped = {id(job) for jobs in groups for job in jobs}
    taken = {(each["metadata"]["namespace"], each["metadata"]["name"]) for each in wanted if id(each) not in grouped}
    rows: dict[int, SurveyRow] = {}
    for jobs in groups:
        namespace, base = jobs[0]["metadata"]["namespace"], sibling_name(jobs)
        name = next(each for each in _numbered(base) if (namespace, each) not in taken)
        row = _import_siblings(jobs, name, by_namespace.get(namespace, ()), restricted)
        if row.imported is not None:
            taken.add((namespace, name))
        rows |= dict.fromkeys(map(id, jobs), row)
    return rows


def _import_siblings(jobs: Sequence[Object], name: str, others: Iterable[Object], restricted: bool) -> SurveyRow:
    first, last = (each["metadata"]["name"] for each in (jobs[0], jobs[-1]))
    row = SurveyRow(jobs[0]["metadata"]["namespace"], f"{len(jobs)} Jobs {first} … {last}")
    try:
        merged = merge_siblings(jobs, name)
        native = restrict_native(merged.native) if restricted else merged.native
        imported = import_job(RelatedObjects.of(native, others), name, merged.items)
    except Refused as refused:
        return row._replace(apart=f"{refused.problems[0].what} ({len(jobs)} Jobs of one template)")
    except _MALFORMED:
        return row
    imported = imported._replace(differences=(*merged.differences, *imported.differences))
    return row._replace(imported=imported, changes=noticeable_changes(imported.differences), problems=imported.blockers)


def _checked_sibling_key(job: Object) -> str | None:
    try:
        _require_known_shape(job)
        return sibling_key(job)
    except (Refused, *_MALFORMED):
        # The import of the single Job reports it.
        return None


def _numbered(name: str) -> Iterator[str]:
    """The name, then `name-2`, `name-3` and so on."""
    yield name
    for number in count(2):
        yield f"{name[: PinterestJobSet.MAX_NAME_LENGTH - 6].rstrip('-')}-{number}"


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
