"""The desk that is installed: what it is told, what stays of that, and what must be there before."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
import pytest

from pincompute.api.names import DESK, OPERATOR
from pincompute.base.certificates import Authority
from pincompute.base.problem import Refused
from pincompute.engine.installation.commands import install
from pincompute.engine.installation.contents import Words, contents
from pincompute.engine.installation.desk import WORDS, Desk, Pair
from pincompute.engine.installation.look import Seen, settled
from pincompute.kube.resource import Object
from pincompute.objects.content import identity
from pincompute.submission.process import desk as program

EMPTY = Seen("https://staging", "v1.36.3", "ann", "Team/Staging", True, [])
SAID = Desk("https://desk.example.com", (("administrators", "platform"), ("issuer", "https://login.example.com")))


def deployment(desk: Desk) -> Object:
    (found,) = (each for each in contents(Words(desk=desk)) if identity(each) == f"Deployment/{DESK}")
    return found


def pod(desk: Desk) -> Any:
    return deployment(desk)["spec"]["template"]["spec"]


def test_what_it_is_told_its_program_understands() -> None:
    """Every word that whoever installs may say, and all that the manifest says itself."""
    desk = SAID._replace(words=tuple((name, "7") for name in WORDS))
    (container,) = pod(desk)["containers"]
    name, *words = container["args"]
    assert name == program.name
    told = program.make_context(name, words).params
    assert {told[each.replace("-", "_")] for each in WORDS} == {"7", 7.0}
    assert (told["listen"], told["database"], told["token_file"]) == (":8443", "/data/desk.sqlite", None)


def test_its_record_is_a_file_of_its_own_or_a_database_that_stands_in_no_word(monkeypatch: pytest.MonkeyPatch) -> None:
    assert (deployment(SAID)["spec"]["replicas"], deployment(SAID)["spec"]["strategy"]) == (1, {"type": "Recreate"})
    assert {"name": "data", "persistentVolumeClaim": {"claimName": DESK}} in pod(SAID)["volumes"]
    several = SAID._replace(database="desk-record")
    assert deployment(several)["spec"]["replicas"] == 2
    assert {"name": "data", "emptyDir": {}} in pod(several)["volumes"]
    (container,) = pod(several)["containers"]
    (variable,) = container["env"]
    assert variable["valueFrom"] == {"secretKeyRef": {"name": "desk-record", "key": "url"}}
    monkeypatch.setenv(variable["name"], "postgresql://desk:secret@record/desk")
    told = program.make_context("desk", container["args"][1:]).params
    assert told["database"] == "postgresql://desk:secret@record/desk"


@pytest.mark.parametrize("there", [SAID, SAID._replace(database="desk-record")])
def test_what_was_not_said_stays(there: Desk) -> None:
    seen = EMPTY._replace(objects=contents(Words(desk=there)))
    assert seen.desk == there
    assert settled(seen, "", "").desk == there
    said = Desk(words=(("administrators", ""), ("client", "desk")))
    words = (("client", "desk"), ("issuer", "https://login.example.com"))
    assert settled(seen, "", "", desk=said).desk == there._replace(words=words)


def test_without_an_address_there_is_none() -> None:
    assert settled(EMPTY, "", "").desk == Desk()
    assert not [each for each in contents(Words()) if each["metadata"]["name"] == DESK]
    with pytest.raises(Refused) as refused:
        settled(EMPTY, "", "", desk=Desk(words=(("client", "pin"),)))
    assert "--desk https://desk.example.com" in refused.value.text()


def test_all_of_the_platform_runs_one_image() -> None:
    """So the operator can read the rules of projects, as the desk does."""
    named = {"Deployment/" + each for each in (DESK, OPERATOR)}
    found = [each for each in contents(Words("mine:1", desk=SAID)) if identity(each) in named]
    assert [each["spec"]["template"]["spec"]["containers"][0]["image"] for each in found] == ["mine:1", "mine:1"]


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--desk", "http://desk.example.com"), "is no https:// address"),
        (("--desk-word", "database=postgresql://secret"), "is none of administrators=…"),
        (("--desk-word", "issuer"), "is none of"),
        (("--desk-key", __file__), "belong together"),
    ],
)
def test_words_that_cannot_be_are_refused_before_a_cluster_is_asked(words: tuple[str, ...], told: str) -> None:
    with pytest.raises(click.UsageError) as refused:
        install.main(["--kubeconfig", "/nowhere", *words], standalone_mode=False)
    assert told in refused.value.format_message()


def test_a_key_of_another_certificate_is_refused(tmp_path: Path) -> None:
    ours = Authority(tmp_path)
    ours.establish()
    for each in ("desk", "another"):
        ours.issue(each, hosts=("desk.example.com",))
    assert Pair.read(ours.certificate("desk"), ours.key("desk")).key
    with pytest.raises(Refused) as refused:
        Pair.read(ours.certificate("desk"), ours.key("another"))
    assert "the desk's certificate cannot be used" in refused.value.text()
