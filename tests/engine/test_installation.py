"""Objects of an installation, checks before it, and applying it to a real API server."""

from __future__ import annotations

import asyncio
from asyncio.subprocess import PIPE, STDOUT
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import click
import pytest

from control_plane import ControlPlane, control_plane
from pincompute.agents.commands import signer
from pincompute.api.names import (
    CLUSTER_FACTS_CONFIGMAP,
    DESK,
    ENGINE,
    INSTALLED_LABEL,
    INSTALLER,
    LOG_STORE,
    NODE_STATS_ACCOUNT,
    OPERATOR,
    SIGNER,
    SYSTEM_NAMESPACE,
)
from pincompute.base.progress import Progress
from pincompute.base.settings import setting_value
from pincompute.engine.build import build_engine
from pincompute.engine.installation import permissions
from pincompute.engine.installation.cluster_inspection import (
    ClusterState,
    find_problems,
    inspect_cluster,
    resolve_config,
    version_numbers,
)
from pincompute.engine.installation.install import apply_objects, delete_superfluous, superfluous_objects
from pincompute.engine.installation.objects import (
    APPLY_ORDER,
    MAXIMAL_CONFIG,
    RESOURCES,
    VERSION,
    InstallConfig,
    platform_objects,
    survives_uninstall,
)
from pincompute.engine.installation.runtime import runtime_objects
from pincompute.kube.client import Client
from pincompute.kube.resource import (
    CLUSTER_ROLES,
    CONFIG_MAPS,
    CRDS,
    DEPLOYMENTS,
    PERSISTENT_VOLUME_CLAIMS,
    ROLES,
    Object,
)
from pincompute.objects.content import object_label
from pincompute.operator.process import operator
from transcripts import ROOT

WANTED = platform_objects(MAXIMAL_CONFIG)
EMPTY = ClusterState("https://staging", "v1.36.3", "ann", "Team/Staging", True, [])


def wanted_of_kind(kind: str) -> list[Object]:
    return [each for each in WANTED if each["kind"] == kind]


def test_every_object_has_label_and_unique_name() -> None:
    assert {each["metadata"]["labels"][INSTALLED_LABEL] for each in WANTED} == {VERSION}
    assert len({object_label(each) for each in WANTED}) == len(WANTED)


def test_roles_are_bound_to_own_accounts_without_wildcards() -> None:
    subjects = [
        each
        for binding in (*wanted_of_kind("ClusterRoleBinding"), *wanted_of_kind("RoleBinding"))
        for each in binding["subjects"]
    ]
    accounts = {(each["namespace"], each["name"]) for each in subjects if each["kind"] == "ServiceAccount"}
    assert accounts == {
        (SYSTEM_NAMESPACE, OPERATOR),
        (SYSTEM_NAMESPACE, DESK),
        (SYSTEM_NAMESPACE, SIGNER),
        (SYSTEM_NAMESPACE, LOG_STORE),
        (SYSTEM_NAMESPACE, NODE_STATS_ACCOUNT),
    }
    # Every pod may request its certificate; the guard policy limits the signer.
    assert [each["name"] for each in subjects if each["kind"] != "ServiceAccount"] == ["system:serviceaccounts"]
    assert "*" not in str([role["rules"] for role in (*wanted_of_kind("ClusterRole"), *wanted_of_kind("Role"))])


def test_token_for_kubelets_reads_measurements_only_and_the_desk_requests_no_other() -> None:
    rules = {
        kind: [each["rules"] for each in wanted_of_kind(kind) if each["metadata"]["name"] == NODE_STATS_ACCOUNT]
        for kind in ("ClusterRole", "Role")
    }
    token = {"resources": ["serviceaccounts/token"], "resourceNames": [NODE_STATS_ACCOUNT], "verbs": ["create"]}
    assert rules == {
        "ClusterRole": [[{"apiGroups": [""], "resources": ["nodes/stats"], "verbs": ["get"]}]],
        "Role": [[{"apiGroups": [""], **token}]],
    }
    everything = [rule for kind in rules for role in wanted_of_kind(kind) for rule in role["rules"]]
    assert [each for each in everything if "serviceaccounts/token" in each.get("resources", ())] == rules["Role"][0]


def test_operator_restarts_only_if_facts_change() -> None:
    def template(config: InstallConfig) -> Object:
        found = (each for each in platform_objects(config) if object_label(each) == f"Deployment/{OPERATOR}")
        return next(found)["spec"]["template"]

    assert template(InstallConfig()) == template(InstallConfig())
    assert template(InstallConfig(domain="apps.example.com")) != template(InstallConfig())


@pytest.mark.parametrize(("name", "program"), [(OPERATOR, operator), (SIGNER, signer)])
def test_installed_pages_need_the_token_of_a_secret(name: str, program: click.Command) -> None:
    (found,) = (each for each in WANTED if object_label(each) == f"Deployment/{name}")
    pod = found["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    arguments = container["args"][container["args"].index(program.name) + 1 :]
    file: Path = program.make_context(program.name, arguments).params["token_file"]
    (mount,) = (each for each in container["volumeMounts"] if each["mountPath"] == str(file.parent))
    (volume,) = (each for each in pod["volumes"] if each["name"] == mount["name"])
    # Pods start without the Secret; the pages are closed until it exists.
    assert (volume["secret"], file.name) == ({"secretName": "pincompute-metrics", "optional": True}, "token")


def test_rejects_old_kubernetes_and_newer_platform() -> None:
    newer = {"kind": "ConfigMap", "metadata": {"name": CLUSTER_FACTS_CONFIGMAP, "labels": {INSTALLED_LABEL: "99.0.0"}}}
    codes = [each.reason.code for each in find_problems(EMPTY._replace(version="v1.32.9", objects=[newer]), WANTED)]
    assert codes == ["KubernetesTooOld", "NewerInstalled"]
    assert list(find_problems(EMPTY, WANTED)) == []
    assert version_numbers("v1.9.10-eks-1") < version_numbers("v1.10.0")


def test_omitted_options_keep_installed_values() -> None:
    assert resolve_config(EMPTY, "", "") == InstallConfig(name="team-staging")
    first = InstallConfig("images.example.com/ours/pincompute:0.0.1", "staging", "a.org", 81, pod_logs="/logs")
    there = platform_objects(first)
    cluster = EMPTY._replace(objects=there)
    expected = first._replace(image=f"images.example.com/ours/pincompute:{VERSION}")
    assert resolve_config(cluster, "", "") == expected
    assert resolve_config(cluster, "mine:1", "b.org:90") == expected._replace(image="mine:1", domain="b.org", port=90)
    assert resolve_config(cluster, "", "b.org").port == 80


def test_objects_of_running_workloads_survive_uninstall() -> None:
    staying = {object_label(each) for each in WANTED if survives_uninstall(each, uses_runtime=False)}
    assert {f"PriorityClass/{name}" for name in ("pincompute-on-demand", "pincompute-reserved")} < staying
    assert "ClusterRole/pincompute-project-viewer" in staying
    gone = {
        f"ClusterRole/{OPERATOR}",
        f"Deployment/{OPERATOR}",
        f"Namespace/{SYSTEM_NAMESPACE}",
        f"Deployment/{SIGNER}",
    }
    assert not gone & staying


def test_desk_database_survives_uninstall_and_upgrade() -> None:
    cluster = EMPTY._replace(objects=WANTED)
    assert cluster.has_desk_record
    gone = {object_label(each) for each in WANTED if not survives_uninstall(each, uses_runtime=False, recorded=True)}
    assert not {f"PersistentVolumeClaim/{DESK}", f"Namespace/{SYSTEM_NAMESPACE}"} & gone
    assert {f"Deployment/{DESK}", f"ClusterRole/{DESK}", f"Service/{DESK}"} < gone
    # The objects that survive show that there was a desk.
    assert EMPTY._replace(objects=[each for each in WANTED if object_label(each) not in gone]).has_desk_record
    assert not EMPTY._replace(objects=platform_objects(InstallConfig())).has_desk_record
    left_over = {object_label(each) for each in superfluous_objects(cluster, platform_objects(InstallConfig()))}
    assert f"Deployment/{DESK}" in left_over
    assert f"PersistentVolumeClaim/{DESK}" not in left_over


def test_with_runtime_uninstall_removes_operator_and_desk_only() -> None:
    gone = {object_label(each) for each in WANTED if not survives_uninstall(each, uses_runtime=True)}
    both = "ClusterRole ClusterRoleBinding Deployment NetworkPolicy PodDisruptionBudget RoleBinding ServiceAccount"
    rehearsal = {f"ValidatingAdmissionPolicy{each}/pincompute-rehearsal" for each in ("", "Binding")}
    limited = "ServiceAccount ClusterRole ClusterRoleBinding Role RoleBinding"
    of_desk = {f"{kind}/{NODE_STATS_ACCOUNT}" for kind in limited.split()}
    of_both = {f"{kind}/{name}" for kind in both.split() for name in (OPERATOR, DESK)}
    assert gone == {*of_both, f"Role/{OPERATOR}", f"Service/{DESK}", *of_desk, *rehearsal}


def test_without_pod_certificates_there_is_no_signer() -> None:
    config = resolve_config(EMPTY._replace(serves_pod_certificates=False), "", "")
    without = {object_label(each) for each in platform_objects(config)}
    assert {object_label(each) for each in WANTED} - without >= {f"Deployment/{SIGNER}", f"StatefulSet/{LOG_STORE}"}
    assert [
        each.reason.code for each in find_problems(EMPTY._replace(serves_pod_certificates=False), WANTED, runtime=True)
    ] == ["PodCertificatesMissing"]


def test_sidecar_images_are_in_registry_of_platform_image() -> None:
    def images(image: str) -> set[str]:
        return {
            one["image"]
            for each in runtime_objects(image, rolled=True)
            for field in ("initContainers", "sidecars")
            for one in each["spec"].get(field, ())
        }

    assert images("pincompute:0.1.0") == {
        "pincompute-config:1",
        "pincompute-identity:1",
        "pincompute-logs:1",
        "pincompute-logs:2",
        "pincompute-metrics:1",
        "pincompute-secrets:1",
        "pincompute-mtls:1",
        "pincompute-traffic:1",
    }
    assert all(
        each.startswith("images.example.com:5000/ours/pincompute-")
        for each in images("images.example.com:5000/ours/pincompute:0.1.0")
    )


def test_runtime_is_not_rolled_out_to_existing_workloads() -> None:
    def rolls(*, rolled: bool) -> list[str]:
        return [
            each["metadata"]["name"]
            for each in runtime_objects("pincompute:1", rolled=rolled)
            if "roll" in each["spec"]
        ]

    assert rolls(rolled=True) == ["1"]
    assert rolls(rolled=False) == []


@pytest.fixture(scope="module")
def own_plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """A separate API server: the guard policies would reject pods that other tests create."""
    programs = build_engine(Path(setting_value("cache")), Progress())
    with control_plane(programs.kubernetes, tmp_path_factory.mktemp("plane")) as started:
        yield started


@pytest.fixture
async def client(own_plane: ControlPlane) -> AsyncIterator[Client]:
    async with Client(own_plane.access(), agent="tests") as client:
        yield client


@pytest.mark.cluster
async def test_foreign_object_is_reported_before_any_write(client: Client) -> None:
    role: Object = {"metadata": {"name": OPERATOR}, "rules": []}
    await client.create(CLUSTER_ROLES, role, manager=ENGINE)
    (problem,) = find_problems(await inspect_cluster(client, WANTED), WANTED)
    assert problem.reason.code == "NotOwned"
    assert f"kubectl label clusterroles {OPERATOR} {INSTALLED_LABEL}={VERSION}" in problem.next
    await client.delete(CLUSTER_ROLES, OPERATOR)


@pytest.mark.cluster
async def test_reports_all_missing_permissions(own_plane: ControlPlane, client: Client) -> None:
    assert await permissions.missing_permissions(client, permissions.install_permissions(), WANTED) == []
    async with Client(own_plane.access("ann", ()), agent="tests") as ann:
        (problem,) = await permissions.missing_permissions(ann, permissions.install_permissions(), WANTED)
    lines = problem.note.splitlines()
    assert f"patch deployments.apps in {SYSTEM_NAMESPACE}" in lines
    assert "create pods/eviction" in lines, "a user can grant only permissions that they have"
    assert problem.what.startswith(f"you lack {len(lines)} ")


@pytest.mark.cluster
async def test_second_apply_changes_nothing_and_deletes_superfluous(client: Client) -> None:
    await apply_objects(client, WANTED)
    first = await inspect_cluster(client, WANTED)
    assert {object_label(each) for each in first.installed_objects} == {object_label(each) for each in WANTED}
    assert first.has_operator
    former: Object = {
        "metadata": {"name": "former", "namespace": SYSTEM_NAMESPACE, "labels": {INSTALLED_LABEL: "0.0.1"}},
        "rules": [],
    }
    await client.create(ROLES, former, manager=ENGINE)
    theirs: Object = {"metadata": {"name": "theirs", "namespace": SYSTEM_NAMESPACE}, "data": {}}
    await client.create(CONFIG_MAPS, theirs, manager=ENGINE)
    cluster = await inspect_cluster(client, WANTED)
    assert [object_label(each) for each in superfluous_objects(cluster, WANTED)] == ["Role/former"]
    await apply_objects(client, WANTED)
    await delete_superfluous(client, cluster, WANTED, Progress())
    again = await inspect_cluster(client, WANTED)
    assert revisions(again) == revisions(first)
    assert await client.get(CONFIG_MAPS, "theirs", SYSTEM_NAMESPACE)
    for resource in APPLY_ORDER:
        assert [one for one in again.installed_objects if one["kind"] == resource.kind], (
            f"no object of kind {resource.kind} is installed"
        )


@pytest.mark.cluster
async def test_kubectl_apply_of_deploy_folder_is_equivalent(own_plane: ControlPlane, client: Client) -> None:
    await apply_objects(client, WANTED)
    own_plane.access()
    files = own_plane.authority
    where = (
        f"--server={own_plane.server}", f"--certificate-authority={files.bundle}",
        f"--client-certificate={files.certificate('admin')}", f"--client-key={files.key('admin')}",
    )  # fmt: skip
    program = build_engine(Path(setting_value("cache")), Progress()).kubernetes
    command = (program, "kubectl", "apply", "--server-side", "-f", ROOT / "deploy", *where)
    before = (await inspect_cluster(client, WANTED)).installed_objects
    # The first run takes over the fields of `pin install`; the second changes nothing.
    for more in ("--force-conflicts",), ():
        process = await asyncio.create_subprocess_exec(*command, *more, stdout=PIPE, stderr=STDOUT)
        output, _ = await process.communicate()
        assert process.returncode == 0, output.decode()
        assert output.decode().count("serverside-applied") == len(WANTED)
    after = (await inspect_cluster(client, WANTED)).installed_objects
    assert fields(after, "kubectl") == fields(before, INSTALLER)
    assert list(map(content, after)) == list(map(content, before))


def fields(objects: list[Object], manager: str) -> dict[str, Object]:
    """The fields that a manager has applied, by object."""
    return {
        object_label(each): one["fieldsV1"]
        for each in objects
        for one in each["metadata"]["managedFields"]
        if (one["manager"], one["operation"]) == (manager, "Apply")
    }


def content(object_: Object) -> Object:
    """An object without managed fields, resource version and status."""
    ignored = {"managedFields", "resourceVersion"}
    metadata = {name: value for name, value in object_["metadata"].items() if name not in ignored}
    return {**{name: value for name, value in object_.items() if name != "status"}, "metadata": metadata}


def revisions(cluster: ClusterState) -> dict[str, str]:
    # The status of these kinds is changed by the cluster itself.
    changed_by_cluster = {CRDS.kind, PERSISTENT_VOLUME_CLAIMS.kind, "ValidatingAdmissionPolicy", DEPLOYMENTS.kind}
    assert changed_by_cluster < RESOURCES.keys()
    return {
        object_label(each): each["metadata"]["resourceVersion"]
        for each in cluster.installed_objects
        if each["kind"] not in changed_by_cluster
    }
