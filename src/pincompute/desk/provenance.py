"""The chain from a commit to the replicas that run it; each link is verified when it is asked for."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from pincompute.admission.reviews import Build, ReviewVerdict, requires_review, workload_of_build
from pincompute.api.break_glass import BreakGlass
from pincompute.api.build import image_digests, image_fields
from pincompute.api.project import Project
from pincompute.api.provenance import ProvenanceChain, ProvenanceLink
from pincompute.api.workload_detail import WorkloadDetail
from pincompute.base.problem import Refused
from pincompute.desk.builds import BuildVerifier
from pincompute.desk.store.record import BREAK_GLASS, ROLLBACK, SubmissionRecord, VerifiedBuild
from pincompute.objects.content import Object

_LastDeployment = tuple[SubmissionRecord, VerifiedBuild | None]


async def trace_provenance(
    detail: WorkloadDetail, last: _LastDeployment | None, project: Project | None, builds: BuildVerifier
) -> ProvenanceChain:
    """The chain of a workload; `last` is its last deploy or rollback."""
    label = detail.summary.label
    deployment, recorded = last or (None, None)
    override = list(_override_links(detail.resource["spec"]))
    submission = _submission_link(
        deployment, recorded, accepts_unreviewed=not requires_review(project), overridden=bool(override)
    )
    if deployment is None or recorded is None:
        return ProvenanceChain(label=label, version="", links=[submission, *override])
    links: list[ProvenanceLink] = []
    try:
        key = deployment.workload_key
        build = await builds.find_build(key.project, key.name, recorded.version)
        verdict = await builds.review_verdict(build, project)
        links += provenance_links(verdict)
        links += [_published_link(build, recorded), submission, *override, *_running_links(detail, build)]
    except Refused as refused:
        links += [_link("published", recorded.version, refused.problems[0].what), submission, *override]
    return ProvenanceChain(label=label, version=recorded.version, links=links)


def provenance_links(verdict: ReviewVerdict) -> list[ProvenanceLink]:
    return [_link(each.subject, each.claim, each.problem.what if each.problem else "") for each in verdict.links]


def _submission_link(
    deployment: SubmissionRecord | None, build: VerifiedBuild | None, *, accepts_unreviewed: bool, overridden: bool
) -> ProvenanceLink:
    if deployment is None:
        return _link("submission", "none", "" if accepts_unreviewed else "it was not deployed by this desk")
    claim = f"{deployment.id} by {deployment.caller} at {deployment.at[:19]}Z"
    if build is None:
        allowed = accepts_unreviewed or deployment.verb == BREAK_GLASS or (deployment.verb == ROLLBACK and overridden)
        failure = "" if allowed else "the project accepts no unreviewed files"
        return _link("submission", f"{claim}, an unreviewed file", failure)
    return _link("submission", claim)


def _override_links(spec: Object) -> Iterator[ProvenanceLink]:
    if data := spec.get("breakGlass"):
        override = msgspec.convert(data, BreakGlass)
        claim = f"emergency override by {override.by or 'an unknown user'} until {override.until}"
        yield _link("break-glass", claim, override.because or "no reason given")


def _published_link(build: Build, recorded: VerifiedBuild) -> ProvenanceLink:
    same = msgspec.json.encode(build.envelope).decode() == recorded.attestation
    failure = "" if same else "the build in the artifact store is not the one that was deployed"
    return _link("published", build.version, failure)


def _running_links(detail: WorkloadDetail, build: Build) -> Iterator[ProvenanceLink]:
    """Whether the cluster has the workload as it was built, and whether its replicas run the build's images."""
    built_images = _images(msgspec.to_builtins(workload_of_build(build).spec))
    spec = detail.resource["spec"]
    if spec.get("build") == build.version:
        changed = sorted(built_images ^ _images(spec))
    else:
        changed = [f"build {spec.get('build', '')}"]
    yield _link("revision", detail.summary.label, f"changed since the deploy: {', '.join(changed)}" if changed else "")
    running = set(detail.history[-1].images.values()) if detail.history else set[str]()
    missing = sorted(name for name, digest in image_digests(build.statement).items() if digest not in running)
    digests = ", ".join(sorted(each[:19] for each in running))
    count = len(detail.replicas)
    claim = f"{count}, running {digests}" if running else f"{count}, none of which has reported its image yet"
    yield _link("replicas", claim, f"no replica runs {', '.join(missing)}" if running and missing else "")


def _images(spec: dict[str, object]) -> frozenset[str]:
    return frozenset(container[field] for container, field in image_fields(spec))


def _link(subject: str, claim: str, failure: str = "") -> ProvenanceLink:
    return ProvenanceLink(subject=subject, claim=claim, verified=not failure, failure=failure)
