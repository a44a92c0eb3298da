"""Previews of deploys: what documents or a build would become and change, and every problem of such a deploy.

The problems are those of the checks that a deploy goes through. Nothing is written or recorded.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

import msgspec

from pincompute.admission.authorization import Permission
from pincompute.admission.infrastructure import Infrastructure
from pincompute.admission.quota import add_quota_to_preview
from pincompute.api.change import Change
from pincompute.api.custom_resource import CustomResource
from pincompute.api.documents import Document, read_documents
from pincompute.api.identity import Identity
from pincompute.api.kinds import WORKLOADS
from pincompute.api.preview import BuildPreview, ChangePlan, Preview
from pincompute.api.project import Project
from pincompute.api.structs import without_defaults
from pincompute.api.validation import parse_resource, parse_resources
from pincompute.api.workload import Workload
from pincompute.base.problem import Problem, Refused, refuse_if
from pincompute.base.reasons import PROJECT_UNKNOWN
from pincompute.desk.authorization import Authorizer
from pincompute.desk.config_bundles import ConfigBundles
from pincompute.desk.document_sets import check_set_size
from pincompute.desk.pipeline import Pipeline
from pincompute.desk.provenance import provenance_links
from pincompute.desk.request import (
    ApplyChange,
    CallContext,
    CreateDocument,
    DeployBuild,
    DeployFile,
    PutDocument,
    infrastructure_key,
    parse_file_workload,
    project_key,
)
from pincompute.desk.store.database import Database
from pincompute.desk.transaction import preview_quota
from pincompute.planning.footprint import WorkloadKey
from pincompute.planning.views.history import describe_changes
from pincompute.platforms.protocol import ChangeWorkload, Platform, PlatformUnavailable, RenderedWorkload


class _Checked(NamedTuple):
    """The result of the checks of one document."""

    rendered: RenderedWorkload | None = None
    """None for what is no workload or cannot be rendered."""
    problems: tuple[Problem, ...] = ()


class Previewer:
    def __init__(
        self,
        database: Database,
        platform: Platform,
        authorizer: Authorizer,
        pipeline: Pipeline,
        config_bundles: ConfigBundles,
    ) -> None:
        self._config_bundles = config_bundles
        self._database = database
        self._platform = platform
        self._authorizer = authorizer
        self._pipeline = pipeline

    async def plan(self, text: str, project: str, context: CallContext) -> list[Preview]:
        """Previews documents: the objects that they become, their changes, and why they would be refused."""
        resources = await self._pipeline.long_texts.parse(text, partial(_parse_documents, text, project))
        for resource in resources:
            # A preview shows what exists already.
            if isinstance(resource, Workload | Project):
                owner = resource.metadata.namespace or resource.metadata.name
                await self._authorizer.authorize(context.caller, Permission.VIEW, owner)
            else:
                await self._authorizer.authorize(context.caller, Permission.ADMINISTER)
        resources = await self._with_config_versions(resources)
        return await self._preview(resources, await self._check_documents(resources, context), context.caller)

    async def plan_build(self, project: str, name: str, version: str, context: CallContext) -> BuildPreview:
        """Previews the deploy of a build, with every problem for which it would be refused."""
        asked = WorkloadKey(project, "", name), DeployBuild(project, name, version)
        (found,) = await self._pipeline.preview([asked], context)
        if isinstance(found, Refused):
            raise found
        workloads = [each for each in (found.submitted,) if each]
        (preview,) = await self._preview(workloads, [_Checked(found.rendered, found.problems)], context.caller)
        without_errors = msgspec.structs.replace(preview, errors=[])
        return BuildPreview(version, without_errors, provenance_links(found.verdict), preview.errors)

    async def plan_change(self, project: str, name: str, change: Change, context: CallContext) -> ChangePlan:
        """Previews a change of a setting, with every problem for which it would be refused."""
        asked = WorkloadKey(project, "", name), ApplyChange(project, name, change)
        (found,) = await self._pipeline.preview([asked], context)
        if isinstance(found, Refused):
            raise found
        rendered = found.rendered
        command, after = rendered.command, rendered.workload
        assert isinstance(command, ChangeWorkload)
        assert after is not None
        before = await self._platform.reader.get_workload(project, name)
        read = partial(preview_quota, cluster=self._platform.name, rendered=[rendered], caller=context.caller)
        (decision,) = await self._database.transact(read, slow=True)
        exceeded = (decision.problem,) if decision.problem else ()
        old, new = (without_defaults(each.spec) for each in (before, after))
        return ChangePlan(
            kind=after.kind,
            project=project,
            name=name,
            effects=list(command.effects),
            fields=list(describe_changes(type(after), old, new)),
            quota_after=list(decision.remaining),
            errors=[each.json() for each in (*found.problems, *exceeded)],
        )

    async def _with_config_versions(self, resources: Sequence[CustomResource]) -> list[CustomResource]:
        return [await self._config_bundles.resolve(each) if isinstance(each, Workload) else each for each in resources]

    async def _check_documents(self, resources: Sequence[CustomResource], context: CallContext) -> list[_Checked]:
        """The checks of the workloads among some resources, which are planned with the others of the set."""
        projects = {each.metadata.name: each for each in resources if isinstance(each, Project)}
        workloads = {WorkloadKey.of(each): each for each in resources if isinstance(each, Workload)}
        deploys: dict[WorkloadKey, DeployFile | PutDocument | CreateDocument] = {
            **{project_key(name): PutDocument(each) for name, each in projects.items()},
            **{_key_of(each): CreateDocument(each) for each in resources if isinstance(each, Infrastructure)},
            **{key: DeployFile(each, projects.get(key.project)) for key, each in workloads.items()},
        }
        found = dict(zip(deploys, await self._pipeline.preview(list(deploys.items()), context), strict=True))
        only_workloads = len(workloads) == len(resources)
        checked: list[_Checked] = []
        for resource in resources:
            result = found[_key_of(resource)]
            if not isinstance(resource, Workload):
                # It uses no quota of its own.
                checked.append(_Checked(None, result.problems))
            elif isinstance(result, Refused):
                # The cluster does not have the projects and runtimes of the set yet. With these, the platform plans.
                unknown = resource.metadata.namespace not in projects
                problems = (
                    each for each in result.problems if only_workloads or (unknown and each.reason is PROJECT_UNKNOWN)
                )
                checked.append(_Checked(None, tuple(problems)))
            else:
                checked.append(_Checked(result.rendered, result.problems))
        return checked

    async def _preview(
        self, resources: Sequence[CustomResource], checked: Sequence[_Checked], caller: Identity
    ) -> list[Preview]:
        """Previews with the use of quota beside the others, and the problems for which each would be refused."""
        try:
            previews = await self._platform.preview(resources)
        except PlatformUnavailable as unavailable:
            raise Refused(unavailable.problem) from unavailable
        except Refused as refused:
            if refused.problems[0].reason.http_status >= 500:
                raise
            # Together with those of the other documents, as a deploy of the set would report them.
            others = (problem for each in checked for problem in each.problems)
            raise Refused(*dict.fromkeys((*refused.problems, *others))) from refused
        rendered = [each.rendered for each in checked]
        read = partial(preview_quota, cluster=self._platform.name, rendered=rendered, caller=caller)
        decisions = await self._database.transact(read, slow=True)
        return [
            add_quota_to_preview(preview, decision, each.problems)
            for preview, decision, each in zip(previews, decisions, checked, strict=True)
        ]


def _key_of(resource: CustomResource) -> WorkloadKey:
    if isinstance(resource, Workload):
        return WorkloadKey.of(resource)
    name = resource.metadata.name
    return project_key(name) if isinstance(resource, Project) else infrastructure_key(resource.kind, name)


def _parse_documents(text: str, project: str) -> list[CustomResource]:
    documents = read_documents(text)
    refuse_if(check_set_size(len(documents)))
    return parse_resources(documents, project, _parse_document)


def _parse_document(document: Document, project: str) -> CustomResource:
    is_workload = document.content.get("kind") in WORKLOADS
    return parse_file_workload(document, project) if is_workload else parse_resource(document, project)
