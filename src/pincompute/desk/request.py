"""Requests to change something, and their parsing into one item for each workload.

A text that cannot be parsed becomes an item that is refused, so that it is recorded like any other.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from typing import NamedTuple, assert_never, cast

import msgspec

from pincompute.admission.break_glass import (
    break_glass_record_text,
    check_break_glass_request,
    grant_break_glass,
)
from pincompute.admission.infrastructure import Infrastructure
from pincompute.admission.reviews import (
    check_claimed_build,
)
from pincompute.api.break_glass import BreakGlass, BreakGlassRequest
from pincompute.api.change import Change
from pincompute.api.custom_resource import CustomResource
from pincompute.api.documents import Document, read_document, read_documents
from pincompute.api.identity import Identity
from pincompute.api.kinds import KINDS
from pincompute.api.project import Project
from pincompute.api.validation import parse_each_resource, parse_resource, parse_workload
from pincompute.api.workload import Workload
from pincompute.base.clock import Clock
from pincompute.base.ids import Ids
from pincompute.base.problem import Problem, Refused, refuse_if
from pincompute.base.reasons import DOCUMENT_INVALID, KIND_UNKNOWN
from pincompute.desk.document_sets import check_set_size, link_set
from pincompute.desk.store.record import (
    BREAK_GLASS,
    DELETE,
    DEPLOY,
    Submission,
)
from pincompute.planning.footprint import WorkloadKey

_MAX_UNREADABLE_CHARS = 4096
"""How much of an unreadable document is recorded."""
_MAX_SET_PROBLEMS = 200
"""How many problems of all documents are recorded and reported; beyond that, the first one of each document."""


class CallContext(NamedTuple):
    """The caller of a request, and how the request is to be answered."""

    caller: Identity
    idempotency_key: str = ""
    wait_for_delivery: bool = True
    """Answer when the platform has it. Otherwise as soon as it is recorded."""
    release_slot: Callable[[], object] = object
    """Gives the request's slot in the queue to the next one. Called when only the wait for delivery remains."""


class DeployDocuments(NamedTuple):
    """Deploy the workloads of a text: one document, or a set of which all are accepted or none."""

    project: str
    text: str
    is_set: bool = False
    break_glass: BreakGlassRequest | None = None


class DeployBuild(NamedTuple):
    """Deploy a published build."""

    project: str
    name: str
    version: str
    break_glass: BreakGlassRequest | None = None


class ApplyChange(NamedTuple):
    """Change one setting of a workload that exists."""

    project: str
    name: str
    change: Change


class RemoveWorkload(NamedTuple):
    """Delete a workload; with a uid, only if it still is that very object."""

    project: str
    name: str
    uid: str = ""


class DeployProject(NamedTuple):
    """Create or change a project, to its document."""

    project: str
    text: str
    generation: int = 0
    """Only if the project still has this generation; 0 for any."""


class RemoveProject(NamedTuple):
    """Delete a project without workloads."""

    project: str


class DeployInfrastructure(NamedTuple):
    """Create a runtime or a version of a runtime part."""

    kind: str
    name: str
    text: str


class RecordUnreadable(NamedTuple):
    """Record a text that cannot be deployed, because it is not UTF-8, and why."""

    project: str
    refused: Refused
    text: str = ""


OtherRequest = DeployProject | RemoveProject | DeployInfrastructure | RecordUnreadable
"""Requests that are about no workload."""
Request = DeployDocuments | DeployBuild | ApplyChange | RemoveWorkload | OtherRequest


class DeployFile(NamedTuple):
    """One document of `DeployDocuments`, parsed and validated."""

    workload: Workload
    planned_project: Project | None = None
    """In a preview: the project as the same set would change it."""


class PutDocument(NamedTuple):
    """The document of `DeployProject`, parsed and validated."""

    project: Project
    generation: int = 0


class CreateDocument(NamedTuple):
    """The document of `DeployInfrastructure`, parsed and validated."""

    resource: Infrastructure


PreviewedAction = DeployFile | DeployBuild | ApplyChange | PutDocument | CreateDocument
WorkloadAction = DeployFile | DeployBuild | ApplyChange | RemoveWorkload | Refused
Action = WorkloadAction | PutDocument | RemoveProject | CreateDocument
"""The action for one workload; Refused for a document that is invalid by itself."""


class Item(NamedTuple):
    """One workload's part of a request: one submission, as it is recorded, and what it asks for."""

    submission: Submission
    action: Action
    override: BreakGlass | None = None
    """The emergency override under which it is deployed."""


class RequestParser:
    def __init__(self, clock: Clock, ids: Ids, cluster: str) -> None:
        self._clock = clock
        self._ids = ids
        self._cluster = cluster

    def parse(self, request: Request, context: CallContext) -> list[Item]:
        """The request as one item for each workload."""
        match request:
            case DeployDocuments():
                return self._parse_documents(request, context)
            case DeployBuild(project, name, version, break_glass):
                override = self._grant_override(break_glass, context)
                submission = self._new_submission(WorkloadKey(project, "", name), DEPLOY, version, context, about=name)
                return [_with_override(Item(submission, request), break_glass, override)]
            case ApplyChange(project, name, change):
                key, verb = WorkloadKey(project, "", name), verb_of(change)
                document = msgspec.json.encode(change).decode()
                return [Item(self._new_submission(key, verb, document, context, about=name), request)]
            case RemoveWorkload(project, name, uid):
                key = WorkloadKey(project, "", name)
                return [Item(self._new_submission(key, DELETE, uid, context, about=name), request)]
            case DeployProject() | RemoveProject() | DeployInfrastructure() | RecordUnreadable():
                return [self._item_without_workload(request, context)]
            case _:
                assert_never(request)

    def preview_item(self, key: WorkloadKey, action: PreviewedAction, context: CallContext) -> Item:
        """An item that is checked and never recorded; it takes no id."""
        verb = verb_of(action.change) if isinstance(action, ApplyChange) else DEPLOY
        submission = Submission("", self._clock.now(), str(context.caller), self._cluster, key, verb, "")
        return Item(submission, action)

    def _parse_documents(self, request: DeployDocuments, context: CallContext) -> list[Item]:
        text, project = request.text, request.project
        try:
            documents = _read_set(text) if request.is_set else [read_document(text)._replace(text=text)]
            override = self._grant_override(request.break_glass, context)
        except Refused as refused:
            return [self._unreadable_item(text, project, refused, context)]
        items: list[Item] = []
        described = 0
        for document, parsed in zip(
            documents, parse_each_resource(documents, project, parse_file_workload), strict=True
        ):
            if isinstance(parsed, Refused):
                first = parsed.problems[: max(1, _MAX_SET_PROBLEMS - described)]
                described += len(first)
                items.append(self._unreadable_item(document.text, project, Refused(*first), context))
                continue
            submission = self._new_submission(WorkloadKey.of(parsed), DEPLOY, document.text, context)
            items.append(_with_override(Item(submission, DeployFile(parsed)), request.break_glass, override))
        linked = link_set([item.submission for item in items], text)
        return [item._replace(submission=submission) for item, submission in zip(items, linked, strict=True)]

    def _item_without_workload(self, request: OtherRequest, context: CallContext) -> Item:
        match request:
            case RecordUnreadable(project, refused, text):
                return self._unreadable_item(text, project, refused, context)
            case RemoveProject(name):
                submission = self._new_submission(project_key(name), DELETE, "", context, about=name)
                return Item(submission, request)
            case DeployProject(name, text, generation):
                key, about = project_key(name), str(generation) if generation else ""
            case DeployInfrastructure(kind, name, text):
                key, about = infrastructure_key(kind, name), ""
        try:
            resource = parse_named(read_document(text), key)
        except Refused as refused:
            return self._unreadable_item(text, key.project, refused, context)
        submission = self._new_submission(key, DEPLOY, text, context, about)
        if isinstance(request, DeployProject):
            return Item(submission, PutDocument(cast("Project", resource), request.generation))
        return Item(submission, CreateDocument(cast("Infrastructure", resource)))

    def _grant_override(self, request: BreakGlassRequest | None, context: CallContext) -> BreakGlass | None:
        if request is None:
            return None
        refuse_if(check_break_glass_request(request))
        return grant_break_glass(request, str(context.caller), self._clock.now())

    def _unreadable_item(self, text: str, project: str, refused: Refused, context: CallContext) -> Item:
        """An item that is refused: recorded are the text's beginning, its digest and its problems."""
        digest = hashlib.sha256(text.encode()).hexdigest()
        # PostgreSQL does not store NUL characters.
        beginning = text[:_MAX_UNREADABLE_CHARS].replace("\0", "?")
        about = f"{digest} {refused.problems[0].what}"
        submission = self._new_submission(WorkloadKey(project, "", ""), DEPLOY, beginning, context, about=about)
        return Item(submission, refused)

    def _new_submission(
        self, key: WorkloadKey, verb: str, document: str, context: CallContext, about: str = ""
    ) -> Submission:
        return Submission(
            id=self._ids.new("submission"), at=self._clock.now(), caller=str(context.caller),
            cluster=self._cluster, workload_key=key, verb=verb, document=document,
            idempotency_key=context.idempotency_key, about=about,
        )  # fmt: skip


def _read_set(text: str) -> Sequence[Document]:
    documents = read_documents(text)
    refuse_if(check_set_size(len(documents)))
    return documents


def parse_file_workload(document: Document, project: str) -> Workload:
    """A file may not say of itself that it is a published build, or that it has an override."""
    workload = parse_workload(document, project)
    refuse_if(check_claimed_build(workload))
    return workload


def verb_of(change: Change) -> str:
    """The verb of a change in the record: its name."""
    return type(change).__name__.lower()


def project_key(name: str) -> WorkloadKey:
    """A project is recorded in itself, so that its members find its changes in their audit log."""
    return WorkloadKey(name, Project.__name__, name)


def infrastructure_key(kind: str, name: str) -> WorkloadKey:
    """Recorded in no project, so that only administrators read it in the audit log."""
    return WorkloadKey("", kind, name)


def parse_named(document: Document, key: WorkloadKey) -> CustomResource:
    """Parse a document, which must be of the kind and the name that the caller was authorized for."""
    kind = document.content.get("kind")
    if isinstance(kind, str) and kind in KINDS and kind != key.kind:
        what = f"a {kind} is not a {key.kind}"
        raise Refused(Problem(KIND_UNKNOWN, what, document.where("kind"), next="pin deploy FILE"))
    resource = parse_resource(document, key.project)
    if resource.metadata.name != key.name:
        what = f"the document is of {key.kind} {resource.metadata.name}, and the request of {key.name}"
        where = document.where("metadata", "name")
        raise Refused(Problem(DOCUMENT_INVALID, what, where, next=f"write metadata: {{name: {key.name}}}"))
    return resource


def _with_override(item: Item, request: BreakGlassRequest | None, override: BreakGlass | None) -> Item:
    """Records the override. What was asked for is part of what must be the same under the same idempotency key."""
    if request is None or override is None:
        return item
    submission = item.submission._replace(
        verb=BREAK_GLASS,
        about=f"{item.submission.about}\0{request.duration_s}\0{request.because}",
        audit_reason=break_glass_record_text(override),
    )
    return item._replace(submission=submission, override=override)
