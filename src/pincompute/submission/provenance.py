"""The chain from a commit to the copies that run, each link looked at when somebody asks."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from pincompute.api.account import Account
from pincompute.api.build import image_places, images
from pincompute.api.glass import Glass
from pincompute.api.project import Project
from pincompute.api.provenance import LinkAccount, ProvenanceAccount
from pincompute.base.problem import Refused
from pincompute.objects.content import Object
from pincompute.planning.landing import Build, Verdict, deployable, only_landed
from pincompute.submission.builds import Builds
from pincompute.submission.record import BREAK_GLASS, Kept, Vouched

Last = tuple[Kept, Vouched | None]


async def traced(account: Account, last: Last | None, project: Project | None, builds: Builds) -> ProvenanceAccount:
    label = account.summary.label
    kept, vouched = last or (None, None)
    asked = _submission(kept, vouched, open_=not only_landed(project))
    unreviewed = list(_glass(account.resource["spec"]))
    if kept is None or vouched is None:
        return ProvenanceAccount(label=label, version="", links=[asked, *unreviewed])
    found: list[LinkAccount] = []
    try:
        build = await builds.find(kept.place.project, kept.place.name, vouched.version)
        verdict = await builds.verdict(build, project)
        found += linked(verdict)
        found += [_published(build, vouched), asked, *unreviewed, *_running(account, build)]
    except Refused as refused:
        found += [_link("published", vouched.version, refused.problems[0].what), asked, *unreviewed]
    return ProvenanceAccount(label=label, version=vouched.version, links=found)


def linked(verdict: Verdict) -> list[LinkAccount]:
    return [_link(each.what, each.says, each.problem.what if each.problem else "") for each in verdict.links]


def _submission(kept: Kept | None, vouched: Vouched | None, *, open_: bool) -> LinkAccount:
    if kept is None:
        return _link("submission", "none", "" if open_ else "it was not brought in by this desk")
    says = f"{kept.id} by {kept.who} at {kept.at[:19]}Z"
    if vouched is None:
        known = open_ or kept.verb == BREAK_GLASS
        return _link("submission", f"{says}, a file that nobody vouches for", "" if known else "the project takes none")
    return _link("submission", says)


def _glass(spec: Object) -> Iterator[LinkAccount]:
    if said := spec.get("breakGlass"):
        glass = msgspec.convert(said, Glass)
        yield _link(
            "glass", f"broken by {glass.by or 'somebody'} until {glass.until}", glass.because or "for no reason"
        )


def _published(build: Build, vouched: Vouched) -> LinkAccount:
    same = msgspec.json.encode(build.envelope).decode() == vouched.attestation
    return _link("published", build.version, "" if same else "what lies in the store is not what was deployed")


def _running(account: Account, build: Build) -> Iterator[LinkAccount]:
    """That the cluster has what was built, and that its copies run it."""
    wanted = _images(msgspec.to_builtins(deployable(build).spec))
    spec = account.resource["spec"]
    changed = (
        sorted(wanted ^ _images(spec)) if spec.get("build") == build.version else [f"build {spec.get('build', '')}"]
    )
    yield _link(
        "revision", account.summary.label, f"somebody changed it since: {', '.join(changed)}" if changed else ""
    )
    seen = set(account.history[-1].images.values()) if account.history else set[str]()
    missing = sorted(name for name, digest in images(build.built).items() if digest not in seen)
    run = ", ".join(sorted(each[:19] for each in seen))
    says = (
        f"{len(account.copies)}, which run {run}"
        if run
        else f"{len(account.copies)}, and none has said yet what it runs"
    )
    yield _link("copies", says, f"none was seen to run {', '.join(missing)}" if seen and missing else "")


def _images(spec: dict[str, object]) -> frozenset[str]:
    return frozenset(place[field] for place, field in image_places(spec))


def _link(what: str, says: str, why: str = "") -> LinkAccount:
    return LinkAccount(what=what, says=says, holds=not why, why=why)
