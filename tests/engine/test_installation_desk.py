"""Configuration of an installed desk."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
import pytest

from pincompute.api.names import DESK, OPERATOR
from pincompute.base.certificate_authority import Authority
from pincompute.base.problem import Refused
from pincompute.desk.process import desk as program
from pincompute.engine.installation.cluster_inspection import ClusterState, resolve_config
from pincompute.engine.installation.commands import install
from pincompute.engine.installation.desk import DESK_OPTIONS, CertificatePair, DeskConfig
from pincompute.engine.installation.objects import InstallConfig, platform_objects
from pincompute.kube.resource import Object
from pincompute.objects.content import object_label

EMPTY = ClusterState("https://staging", "v1.36.3", "ann", "Team/Staging", True, [])
CONFIGURED = DeskConfig(
    "https://desk.example.com", (("administrators", "platform"), ("issuer", "https://login.example.com"))
)


def deployment(desk: DeskConfig) -> Object:
    (found,) = (
        each for each in platform_objects(InstallConfig(desk=desk)) if object_label(each) == f"Deployment/{DESK}"
    )
    return found


def pod_of_desk(desk: DeskConfig) -> Any:
    return deployment(desk)["spec"]["template"]["spec"]


def test_desk_accepts_all_configured_options() -> None:
    """Covers all options of --desk-word and all arguments in the manifest."""
    desk = CONFIGURED._replace(options=tuple((name, "7") for name in DESK_OPTIONS))
    (container,) = pod_of_desk(desk)["containers"]
    name, *arguments = container["args"]
    assert name == program.name
    parameters = program.make_context(name, arguments).params
    assert {parameters[each.replace("-", "_")] for each in DESK_OPTIONS} == {"7", 7.0}
    assert (parameters["listen"], parameters["database"], parameters["token_file"]) == (
        ":8443",
        "/data/desk.sqlite",
        None,
    )


def test_database_is_a_volume_or_a_secret_reference(monkeypatch: pytest.MonkeyPatch) -> None:
    assert (deployment(CONFIGURED)["spec"]["replicas"], deployment(CONFIGURED)["spec"]["strategy"]) == (
        1,
        {"type": "Recreate"},
    )
    assert {"name": "data", "persistentVolumeClaim": {"claimName": DESK}} in pod_of_desk(CONFIGURED)["volumes"]
    several = CONFIGURED._replace(database="desk-record")
    assert deployment(several)["spec"]["replicas"] == 2
    assert {"name": "data", "emptyDir": {}} in pod_of_desk(several)["volumes"]
    (container,) = pod_of_desk(several)["containers"]
    (variable,) = container["env"]
    assert variable["valueFrom"] == {"secretKeyRef": {"name": "desk-record", "key": "url"}}
    monkeypatch.setenv(variable["name"], "postgresql://desk:secret@record/desk")
    parameters = program.make_context("desk", container["args"][1:]).params
    assert parameters["database"] == "postgresql://desk:secret@record/desk"


@pytest.mark.parametrize("there", [CONFIGURED, CONFIGURED._replace(database="desk-record")])
def test_omitted_options_keep_installed_values(there: DeskConfig) -> None:
    cluster = EMPTY._replace(objects=platform_objects(InstallConfig(desk=there)))
    assert cluster.desk == there
    assert resolve_config(cluster, "", "").desk == there
    change = DeskConfig(options=(("administrators", ""), ("client", "desk")))
    options = (("client", "desk"), ("issuer", "https://login.example.com"))
    assert resolve_config(cluster, "", "", desk=change).desk == there._replace(options=options)


def test_no_desk_without_address() -> None:
    assert resolve_config(EMPTY, "", "").desk == DeskConfig()
    assert not [each for each in platform_objects(InstallConfig()) if each["metadata"]["name"] == DESK]
    with pytest.raises(Refused) as refused:
        resolve_config(EMPTY, "", "", desk=DeskConfig(options=(("client", "pin"),)))
    assert "--desk https://desk.example.com" in refused.value.text()


def test_desk_and_operator_have_the_same_image() -> None:
    """The operator evaluates policies of projects with the same code as the desk."""
    labels = {"Deployment/" + each for each in (DESK, OPERATOR)}
    found = [
        each for each in platform_objects(InstallConfig("mine:1", desk=CONFIGURED)) if object_label(each) in labels
    ]
    assert [each["spec"]["template"]["spec"]["containers"][0]["image"] for each in found] == ["mine:1", "mine:1"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--desk", "http://desk.example.com"), "must start with https://"),
        (("--desk-word", "database=postgresql://secret"), "must be one of administrators=…"),
        (("--desk-word", "issuer"), "must be one of"),
        (("--desk-key", __file__), "belong together"),
    ],
)
def test_rejects_invalid_options_before_connecting(arguments: tuple[str, ...], message: str) -> None:
    with pytest.raises(click.UsageError) as refused:
        install.main(["--kubeconfig", "/nowhere", *arguments], standalone_mode=False)
    assert message in refused.value.format_message()


def test_rejects_key_of_another_certificate(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    authority.establish()
    for name in ("desk", "another"):
        authority.issue(name, hosts=("desk.example.com",))
    assert CertificatePair.read(authority.certificate("desk"), authority.key("desk")).key
    with pytest.raises(Refused) as refused:
        CertificatePair.read(authority.certificate("desk"), authority.key("another"))
    assert "certificate and key of the desk are not valid" in refused.value.text()
