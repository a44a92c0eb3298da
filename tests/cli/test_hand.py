"""The hand without a platform: what it writes, what it refuses, and in which words."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from pincompute.base.context import Context, write_context
from pincompute.main import COMMANDS, PROCESSES, group


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PIN_STATE", str(tmp_path / "state"))


def run(*words: str) -> Result:
    return CliRunner().invoke(group(), words)


@pytest.mark.parametrize("command", [*COMMANDS, *PROCESSES])
def test_every_command_of_the_table_exists_and_has_help(command: str) -> None:
    result = run(command, "--help")
    assert result.exit_code == 0, result.output
    if command in COMMANDS and command != "kubectl":
        assert COMMANDS[command][1].split(";")[0].rstrip(".") in result.output.replace("\n", " ")


def test_without_a_platform_the_next_thing_to_type_is_told() -> None:
    result = run("get")
    assert result.exit_code == 1
    assert "there is no platform 'main' on this machine" in result.stderr
    assert "next: pin up" in result.stderr
    assert result.stdout == ""


@pytest.fixture
def silent(tmp_path: Path) -> None:
    """A platform that is known, and whose desk does not answer."""
    context = Context(name="main", desk="http://127.0.0.1:9", token="secret", kubeconfig="")
    write_context(tmp_path / "state", context)


@pytest.mark.usefixtures("silent")
def test_deploy_writes_at_most_twelve_lines_and_says_so() -> None:
    result = run("deploy", "hello", "--image", "hello:dev", "--port", "8080")
    assert "hello.yaml written (8 lines)" in result.stderr
    assert "does not answer" in result.stderr
    assert len(Path("hello.yaml").read_text().splitlines()) <= 12
    assert run("plan", "hello.yaml").exit_code == 0


@pytest.mark.usefixtures("silent")
def test_deploy_never_writes_over_a_file() -> None:
    Path("hello.yaml").write_text("mine")
    result = run("deploy", "hello", "--image", "hello:dev", "--port", "8080")
    assert result.exit_code == 1
    assert "hello.yaml exists and says something else" in result.stderr
    assert Path("hello.yaml").read_text() == "mine"


@pytest.mark.usefixtures("silent")
@pytest.mark.parametrize(
    ("name", "image", "told"),
    [
        ("a/b", "hello:dev", "'a/b' cannot be a name"),
        ("Hello", "hello:dev", "'Hello' cannot be a name"),
        ("hello", "a b", "'a b' cannot be an image"),
        ("hello", "x: [", "cannot be an image"),
    ],
)
def test_deploy_writes_nothing_that_could_not_be_deployed(tmp_path: Path, name: str, image: str, told: str) -> None:
    result = run("deploy", name, "--image", image, "--port", "8080")
    assert result.exit_code == 1
    assert told in result.stderr
    assert list(tmp_path.glob("*.yaml")) == []


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("deploy", "hello"), "there is no file 'hello'"),
        (("deploy", "hello", "--image", "x"), "--port is missing"),
        (("deploy", "hello", "--image", "x", "--port", "0"), "0 is not in the range"),
        (("plan", "none.yaml"), "'none.yaml' cannot be read"),
        (("deploy", "a", "--kubeconfig", "none"), "there is no file 'a'"),
        (("get", "--kubeconfig", "none"), "none"),
    ],
)
def test_bad_words(words: tuple[str, ...], told: str) -> None:
    result = run(*words)
    assert result.exit_code != 0
    assert told in result.stderr
    assert "Traceback" not in result.stderr


def test_plan_is_offline_and_takes_all_files_or_none() -> None:
    Path("good.yaml").write_text(
        "apiVersion: pinterest.com/v1\nkind: PinterestService\nmetadata: {name: hello}\nspec: {image: a, port: 1}\n"
    )
    Path("bad.yaml").write_text("apiVersion: v2\n")
    assert "Deployment/hello" in run("plan", "good.yaml").stdout
    both = run("plan", "good.yaml", "bad.yaml")
    assert both.exit_code == 1
    assert both.stdout == ""
    assert "bad.yaml" in both.stderr


WHAT_IT_LOADED = """
import atexit, sys
from pincompute.main import main
sys.argv = ["pin", *sys.argv[1:]]
atexit.register(lambda: print(*sys.modules, file=sys.stderr))
main()
"""


def loaded(*words: str) -> set[str]:
    """Modules, and the packages that they are of."""
    command = [sys.executable, "-c", WHAT_IT_LOADED, *words]
    done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=False)
    modules = done.stderr.splitlines()[-1].split()
    return {".".join(steps[:size]) for steps in (each.split(".") for each in modules) for size in range(len(steps) + 1)}


def test_help_loads_no_command() -> None:
    heavy = {"aiohttp", "click", "msgspec", "yaml", "pincompute.base", "pincompute.cli", "pincompute.engine"}
    assert not heavy & loaded("--help")


@pytest.mark.usefixtures("silent")
@pytest.mark.parametrize(
    "words",
    ["get", "why web", "logs web", "wait web", "deploy web.yaml", "delete web", "scale web 2", "whoami", "project me"],
)
def test_who_asks_a_desk_loads_what_that_takes(words: str) -> None:
    """Each of these is a tenth of a second, or more than its answer takes to come."""
    Path("web.yaml").write_text("kind: PinterestService\n")
    heavy = {"aiohttp", "cryptography", "email", "http", "random", "secrets", "structlog", "tomllib", "yaml"}
    ours = {"api.kinds", "api.workload", "controller", "engine", "kube.client", "kube.errors", "planning"}
    found = loaded(*words.split())
    assert "pincompute.cli.desk" in found
    assert not (heavy | {f"pincompute.{each}" for each in ours}) & found


@pytest.mark.parametrize("text", ["a: 1\n---\nb: 2", "--- {a: 1}\n--- {b: 2}", "a: 1\n...\nb: 2", "a: 1\r---\rb: 2"])
def test_a_file_that_may_be_several_is_read(text: str) -> None:
    Path("two.yaml").write_text(text, newline="")
    assert "pincompute.cli.files" in loaded("deploy", "two.yaml")


@pytest.mark.parametrize("desk", ["http://desk.example.com", "desk.example.com", "ftp://127.0.0.1"])
def test_nobody_says_who_they_are_where_others_listen(desk: str) -> None:
    result = run("login", desk)
    assert result.exit_code == 1
    assert f"{desk} is no https:// address" in result.stderr
    assert "next: pin login https://…" in result.stderr


def test_a_platform_of_this_name_is_not_lost_by_a_login(tmp_path: Path) -> None:
    write_context(tmp_path / "state", Context(name="main", desk="http://127.0.0.1:1", token="secret", kubeconfig=""))
    result = run("login", "https://desk.example.com")
    assert "'main' is the platform at http://127.0.0.1:1 already" in result.stderr
    assert "next: pin login https://desk.example.com --name NAME" in result.stderr
    # Nobody has signed in, and nobody is any more.
    assert run("login", "--out").output == "main: nobody is signed in\n"


def test_where_no_desk_answers_the_address_is_told() -> None:
    result = run("login", "http://127.0.0.1:1")
    assert "at http://127.0.0.1:1 no desk answers" in result.stderr
