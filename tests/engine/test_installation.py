"""What is installed on a cluster, and what speaks against it, on a real API server of its own."""

from __future__ import annotations

import asyncio
from asyncio.subprocess import PIPE, STDOUT
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from control_plane import ControlPlane, control_plane
from pincompute.api.names import CLUSTER_FACTS, DESK, ENGINE, INSTALLED, INSTALLER, LOG_STORE, OPERATOR, SIGNER, SYSTEM
from pincompute.base.settings import setting
from pincompute.engine.build import build
from pincompute.engine.installation import rights
from pincompute.engine.installation.contents import EVERYTHING, ORDER, RESOURCES, VERSION, Words, contents, stays
from pincompute.engine.installation.install import clear, superfluous, write
from pincompute.engine.installation.look import Seen, look, numbers, problems, settled
from pincompute.engine.installation.runtime import given
from pincompute.engine.progress import Progress
from pincompute.kube.client import Client
from pincompute.kube.resource import CLAIMS, CLUSTER_ROLES, CONFIG_MAPS, CRDS, DEPLOYMENTS, ROLES, Object
from pincompute.objects.content import identity
from transcripts import ROOT

WANTED = contents(EVERYTHING)
EMPTY = Seen("https://staging", "v1.36.3", "ann", "Team/Staging", True, [])


def of(kind: str) -> list[Object]:
    return [each for each in WANTED if each["kind"] == kind]


def test_everything_is_marked_and_named_once() -> None:
    assert {each["metadata"]["labels"][INSTALLED] for each in WANTED} == {VERSION}
    assert len({identity(each) for each in WANTED}) == len(WANTED)


def test_only_our_accounts_get_rights_and_none_is_a_wildcard() -> None:
    subjects = [each for binding in (*of("ClusterRoleBinding"), *of("RoleBinding")) for each in binding["subjects"]]
    accounts = {(each["namespace"], each["name"]) for each in subjects if each["kind"] == "ServiceAccount"}
    assert accounts == {(SYSTEM, OPERATOR), (SYSTEM, DESK), (SYSTEM, SIGNER), (SYSTEM, LOG_STORE)}
    # Every pod may ask who it is; for what, the guard says.
    assert [each["name"] for each in subjects if each["kind"] != "ServiceAccount"] == ["system:serviceaccounts"]
    assert "*" not in str([role["rules"] for role in (*of("ClusterRole"), *of("Role"))])


def test_other_facts_start_the_operator_anew_and_the_same_do_not() -> None:
    def template(words: Words) -> Object:
        found = (each for each in contents(words) if identity(each) == f"Deployment/{OPERATOR}")
        return next(found)["spec"]["template"]

    assert template(Words()) == template(Words())
    assert template(Words(domain="apps.example.com")) != template(Words())


def test_an_old_kubernetes_and_a_newer_platform_are_refused() -> None:
    newer = {"kind": "ConfigMap", "metadata": {"name": CLUSTER_FACTS, "labels": {INSTALLED: "99.0.0"}}}
    codes = [each.reason.code for each in problems(EMPTY._replace(version="v1.32.9", objects=[newer]), WANTED)]
    assert codes == ["KubernetesTooOld", "NewerInstalled"]
    assert list(problems(EMPTY, WANTED)) == []
    assert numbers("v1.9.10-eks-1") < numbers("v1.10.0")


def test_what_was_not_said_stays_as_it_is_on_the_cluster() -> None:
    assert settled(EMPTY, "", "") == Words(name="team-staging")
    said = Words("images.example.com/ours/pincompute:0.0.1", "staging", "a.org", 81, pod_logs="/logs")
    there = contents(said)
    seen = EMPTY._replace(objects=there)
    kept = said._replace(image=f"images.example.com/ours/pincompute:{VERSION}")
    assert settled(seen, "", "") == kept
    assert settled(seen, "mine:1", "b.org:90") == kept._replace(image="mine:1", domain="b.org", port=90)
    assert settled(seen, "", "b.org").port == 80


def test_what_running_work_and_its_people_need_stays() -> None:
    staying = {identity(each) for each in WANTED if stays(each, served=False)}
    assert {f"PriorityClass/{name}" for name in ("pincompute-on-demand", "pincompute-reserved")} < staying
    assert "ClusterRole/pincompute-project-viewer" in staying
    gone = {f"ClusterRole/{OPERATOR}", f"Deployment/{OPERATOR}", f"Namespace/{SYSTEM}", f"Deployment/{SIGNER}"}
    assert not gone & staying


def test_the_record_of_a_desk_outlives_it_and_a_version_that_has_none() -> None:
    seen = EMPTY._replace(objects=WANTED)
    assert seen.recorded
    gone = {identity(each) for each in WANTED if not stays(each, served=False, recorded=True)}
    assert not {f"PersistentVolumeClaim/{DESK}", f"Namespace/{SYSTEM}"} & gone
    assert {f"Deployment/{DESK}", f"ClusterRole/{DESK}", f"Service/{DESK}"} < gone
    # What stayed of it tells that there was one.
    assert EMPTY._replace(objects=[each for each in WANTED if identity(each) not in gone]).recorded
    assert not EMPTY._replace(objects=contents(Words())).recorded
    left_over = {identity(each) for each in superfluous(seen, contents(Words()))}
    assert f"Deployment/{DESK}" in left_over
    assert f"PersistentVolumeClaim/{DESK}" not in left_over


def test_where_pods_have_certificates_only_the_operator_and_the_desk_go() -> None:
    gone = {identity(each) for each in WANTED if not stays(each, served=True)}
    both = "ClusterRole ClusterRoleBinding Deployment NetworkPolicy PodDisruptionBudget RoleBinding ServiceAccount"
    rehearsal = {f"ValidatingAdmissionPolicy{each}/pincompute-rehearsal" for each in ("", "Binding")}
    of_both = {f"{kind}/{name}" for kind in both.split() for name in (OPERATOR, DESK)}
    assert gone == {*of_both, f"Role/{OPERATOR}", f"Service/{DESK}", *rehearsal}


def test_where_no_pod_can_be_given_a_certificate_there_is_nobody_who_gives_any() -> None:
    words = settled(EMPTY._replace(certificates=False), "", "")
    without = {identity(each) for each in contents(words)}
    assert {identity(each) for each in WANTED} - without >= {f"Deployment/{SIGNER}", f"StatefulSet/{LOG_STORE}"}
    assert [each.reason.code for each in problems(EMPTY._replace(certificates=False), WANTED, runtime=True)] == [
        "PodCertificatesMissing"
    ]


def test_images_of_parts_lie_beside_the_platforms_own() -> None:
    def images(image: str) -> set[str]:
        return {one["image"] for each in given(image, rolled=True) for one in each["spec"].get("sidecars", ())}

    assert images("pincompute:0.1.0") == {"pincompute-identity:1", "pincompute-logs:1", "pincompute-logs:2"}
    assert "images.example.com:5000/ours/pincompute-logs:1" in images("images.example.com:5000/ours/pincompute:0.1.0")


def test_where_work_runs_no_runtime_is_rolled_out_by_itself() -> None:
    def rolls(*, rolled: bool) -> list[str]:
        return [each["metadata"]["name"] for each in given("pincompute:1", rolled=rolled) if "roll" in each["spec"]]

    assert rolls(rolled=True) == ["1"]
    assert rolls(rolled=False) == []


@pytest.fixture(scope="module")
def own_plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """Of its own: who may make pods is asked of everybody, and other tests make them by hand."""
    programs = build(Path(setting("cache")), Progress())
    with control_plane(programs.kubernetes, tmp_path_factory.mktemp("plane")) as started:
        yield started


@pytest.fixture
async def client(own_plane: ControlPlane) -> AsyncIterator[Client]:
    async with Client(own_plane.access(), agent="tests") as client:
        yield client


@pytest.mark.cluster
async def test_what_is_somebody_elses_is_named_before_anything_is_written(client: Client) -> None:
    role: Object = {"metadata": {"name": OPERATOR}, "rules": []}
    await client.create(CLUSTER_ROLES, role, manager=ENGINE)
    (problem,) = problems(await look(client, WANTED), WANTED)
    assert problem.reason.code == "NotOurs"
    assert f"kubectl label clusterroles {OPERATOR} {INSTALLED}={VERSION}" in problem.next
    await client.delete(CLUSTER_ROLES, OPERATOR)


@pytest.mark.cluster
async def test_all_rights_that_are_missing_are_told_at_once(own_plane: ControlPlane, client: Client) -> None:
    assert await rights.missing(client, rights.to_install(), WANTED) == []
    async with Client(own_plane.access("ann", ()), agent="tests") as ann:
        (problem,) = await rights.missing(ann, rights.to_install(), WANTED)
    lines = problem.note.splitlines()
    assert f"patch deployments.apps in {SYSTEM}" in lines
    assert "create pods/eviction" in lines, "nobody gives what they do not have"
    assert problem.what.startswith(f"you lack {len(lines)} ")


@pytest.mark.cluster
async def test_writing_twice_changes_nothing_and_what_is_wanted_no_more_goes(client: Client) -> None:
    await write(client, WANTED)
    first = await look(client, WANTED)
    assert {identity(each) for each in first.ours} == {identity(each) for each in WANTED}
    assert first.runs
    former: Object = {"metadata": {"name": "former", "namespace": SYSTEM, "labels": {INSTALLED: "0.0.1"}}, "rules": []}
    await client.create(ROLES, former, manager=ENGINE)
    theirs: Object = {"metadata": {"name": "theirs", "namespace": SYSTEM}, "data": {}}
    await client.create(CONFIG_MAPS, theirs, manager=ENGINE)
    seen = await look(client, WANTED)
    assert [identity(each) for each in superfluous(seen, WANTED)] == ["Role/former"]
    await write(client, WANTED)
    await clear(client, seen, WANTED, Progress())
    again = await look(client, WANTED)
    assert revisions(again) == revisions(first)
    assert await client.get(CONFIG_MAPS, "theirs", SYSTEM)
    for each in ORDER:
        assert [one for one in again.ours if one["kind"] == each.kind], f"{each.kind} is looked for, and never written"


@pytest.mark.cluster
async def test_the_files_of_deploy_by_kubectl_make_the_same(own_plane: ControlPlane, client: Client) -> None:
    await write(client, WANTED)
    own_plane.access()
    files = own_plane.authority
    where = (
        f"--server={own_plane.server}", f"--certificate-authority={files.bundle}",
        f"--client-certificate={files.certificate('admin')}", f"--client-key={files.key('admin')}",
    )  # fmt: skip
    program = build(Path(setting("cache")), Progress()).kubernetes
    command = (program, "kubectl", "apply", "--server-side", "-f", ROOT / "deploy", *where)
    before = (await look(client, WANTED)).ours
    # What `pin install` wrote is taken over; and then the same again.
    for more in ("--force-conflicts",), ():
        process = await asyncio.create_subprocess_exec(*command, *more, stdout=PIPE, stderr=STDOUT)
        said, _ = await process.communicate()
        assert process.returncode == 0, said.decode()
        assert said.decode().count("serverside-applied") == len(WANTED)
    after = (await look(client, WANTED)).ours
    assert fields(after, "kubectl") == fields(before, INSTALLER)
    assert list(map(content, after)) == list(map(content, before))


def fields(objects: list[Object], manager: str) -> dict[str, Object]:
    """What somebody applied, of each."""
    return {
        identity(each): one["fieldsV1"]
        for each in objects
        for one in each["metadata"]["managedFields"]
        if (one["manager"], one["operation"]) == (manager, "Apply")
    }


def content(object_: Object) -> Object:
    """Without what says only who wrote it when, and what the cluster makes of it."""
    aside = {"managedFields", "resourceVersion"}
    metadata = {name: value for name, value in object_["metadata"].items() if name not in aside}
    return {**{name: value for name, value in object_.items() if name != "status"}, "metadata": metadata}


def revisions(seen: Seen) -> dict[str, str]:
    # What a cluster does to itself, such as to say that it serves a kind, is no writing of ours.
    quiet = {CRDS.kind, CLAIMS.kind, "ValidatingAdmissionPolicy", DEPLOYMENTS.kind}
    assert quiet < RESOURCES.keys()
    return {identity(each): each["metadata"]["resourceVersion"] for each in seen.ours if each["kind"] not in quiet}
