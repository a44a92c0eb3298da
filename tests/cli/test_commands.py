"""Commands without a running platform: files they write, messages, and the modules they load."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner, Result

from fake_desk import fake_desk
from pincompute.api.documents import read_document
from pincompute.api.receipt import SubmissionReceipt
from pincompute.base.platform_context import Context, write_context
from pincompute.main import COMMANDS, PROCESSES, command_group


@pytest.fixture(autouse=True)
def empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PIN_STATE", str(tmp_path / "state"))


def run(*words: str) -> Result:
    return CliRunner().invoke(command_group(), words)


@pytest.mark.parametrize("command", [*COMMANDS, *PROCESSES])
def test_each_command_has_the_help_of_the_table(command: str) -> None:
    result = run(command, "--help")
    assert result.exit_code == 0, result.output
    if command in COMMANDS and command != "kubectl":
        assert COMMANDS[command][1].split(";")[0].rstrip(".") in result.output.replace("\n", " ")


def test_without_platform_suggests_pin_up() -> None:
    result = run("get")
    assert result.exit_code == 1
    assert "no platform 'main' on this machine" in result.stderr
    assert "next: pin up" in result.stderr
    assert result.stdout == ""


@pytest.fixture
def unreachable_desk(tmp_path: Path) -> None:
    """A configured platform with an unreachable desk."""
    context = Context(name="main", desk="http://127.0.0.1:9", token="secret", kubeconfig="")
    write_context(tmp_path / "state", context)


@pytest.mark.usefixtures("unreachable_desk")
def test_deploy_writes_a_short_file() -> None:
    result = run("deploy", "hello", "--image", "hello:dev", "--port", "8080")
    assert "hello.yaml written (8 lines)" in result.stderr
    assert "does not answer" in result.stderr
    assert len(Path("hello.yaml").read_text().splitlines()) <= 12
    assert run("plan", "hello.yaml").exit_code == 0


def test_timeout_includes_delivery(tmp_path: Path) -> None:
    """The desk accepts, and the cluster does not respond."""
    unused: dict[str, Any] = dict.fromkeys(("accepted_at", "caller", "project", "kind", "verb", "state", "url"), "")
    accepted = SubmissionReceipt(id="s-1", name="web", last_delivery_error="etcd is down", **unused)
    asked: list[str] = []

    def accept(method: str, path: str) -> tuple[int, object]:
        asked.append(f"{method} {path}")
        return 202, accepted

    with fake_desk(tmp_path / "state", accept):
        result = run("scale", "web", "3", "--timeout", "0.5")
    assert result.exit_code == 1
    assert "accepted; the cluster has not taken it yet: waiting" in result.stderr
    assert "web is accepted as s-1, and not yet delivered to its cluster" in result.stderr
    assert "etcd is down" in result.stderr
    assert 2 <= len(asked) <= 5, asked


@pytest.mark.usefixtures("unreachable_desk")
def test_hint_names_the_platform_of_the_command(tmp_path: Path) -> None:
    write_context(tmp_path / "state", Context(name="far", desk="http://127.0.0.1:9", token="", kubeconfig=""))
    assert run("get", "--name", "far").stderr.endswith("next: pin status --name far\n")
    assert run("get").stderr.endswith("next: pin status\n")


@pytest.mark.usefixtures("unreachable_desk")
def test_deploy_writes_environment() -> None:
    run("deploy", "hello", "--image", "hello:dev", "--port", "8080", "--env", "LEVEL=1", "--env", "URL=a=b")
    assert read_document(Path("hello.yaml").read_text()).content["spec"]["environment"] == {"LEVEL": "1", "URL": "a=b"}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("hello", "--image", "a", "--port", "1", "--env", "s3cret"), "an environment variable must be NAME=VALUE"),
        (("hello", "--image", "a", "--port", "1", "--env", "=s3cret"), "an environment variable must be NAME=VALUE"),
        (("hello.yaml", "--env", "A=s3cret"), "next: environment: {NAME: value} in the file"),
    ],
)
def test_rejects_environment_without_repeating_its_value(words: tuple[str, ...], message: str) -> None:
    result = run("deploy", *words)
    assert result.exit_code == 2
    assert message in result.stderr
    assert "s3cret" not in result.stderr


@pytest.mark.usefixtures("unreachable_desk")
def test_deploy_never_overwrites_a_file() -> None:
    Path("hello.yaml").write_text("mine")
    result = run("deploy", "hello", "--image", "hello:dev", "--port", "8080")
    assert result.exit_code == 2
    assert "hello.yaml exists with other content" in result.stderr
    assert Path("hello.yaml").read_text() == "mine"


@pytest.mark.usefixtures("unreachable_desk")
@pytest.mark.parametrize(
    ("name", "image", "message"),
    [
        ("a/b", "hello:dev", "invalid name 'a/b'"),
        ("Hello", "hello:dev", "invalid name 'Hello'"),
        ("hello", "a b", "invalid image 'a b'"),
        ("hello", "x: [", "invalid image 'x: ['"),
    ],
)
def test_deploy_writes_no_invalid_file(tmp_path: Path, name: str, image: str, message: str) -> None:
    result = run("deploy", name, "--image", image, "--port", "8080")
    assert result.exit_code == 1
    assert message in result.stderr
    assert list(tmp_path.glob("*.yaml")) == []


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("deploy", "hello"), "no such file: 'hello'"),
        (("deploy", "hello", "--image", "x"), "--port is missing"),
        (("deploy", "hello", "--image", "x", "--worker", "--port", "1"), "a worker has no port"),
        (("deploy", "hello", "--worker"), "pin deploy hello --image IMAGE --worker"),
        (("deploy", "hello", "--image", "x", "--port", "0"), "0 is not in the range"),
        (("plan", "none.yaml"), "no such file: 'none.yaml'"),
        (("deploy", "a", "--kubeconfig", "none"), "no such file: 'a'"),
        (("get", "--kubeconfig", "none"), "none"),
    ],
)
def test_rejects_invalid_arguments(words: tuple[str, ...], message: str) -> None:
    result = run(*words)
    assert result.exit_code != 0
    assert message in result.stderr
    assert "Traceback" not in result.stderr


def test_plan_works_without_platform_and_takes_all_files_or_none() -> None:
    Path("good.yaml").write_text(
        "apiVersion: pinterest.com/v1\nkind: PinterestService\nmetadata: {name: hello}\nspec: {image: a, port: 1}\n"
    )
    Path("bad.yaml").write_text("apiVersion: v2\n")
    assert "Deployment/hello" in run("plan", "good.yaml").stdout
    both = run("plan", "good.yaml", "bad.yaml")
    assert both.exit_code == 1
    assert both.stdout == ""
    assert "bad.yaml" in both.stderr


PRINT_LOADED_MODULES = """
import atexit, sys
from pincompute.main import main
sys.argv = ["pin", *sys.argv[1:]]
atexit.register(lambda: print(*sys.modules, file=sys.stderr))
main()
"""


def loaded_modules(*words: str) -> set[str]:
    """Return the modules that a command loads, and their packages."""
    command = [sys.executable, "-c", PRINT_LOADED_MODULES, *words]
    done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=False)
    modules = done.stderr.splitlines()[-1].split()
    return {".".join(steps[:size]) for steps in (each.split(".") for each in modules) for size in range(len(steps) + 1)}


def test_closed_pipe_ends_silently() -> None:
    """As in `pin config view | head -1`: the reader has gone before everything is written."""
    reader, writer = os.pipe()
    os.close(reader)
    command = [sys.executable, "-m", "pincompute", "config", "view"]
    done = subprocess.run(command, stdout=writer, stderr=subprocess.PIPE, text=True, check=False)
    os.close(writer)
    assert (done.returncode, done.stderr) == (1, "")


@click.command()
def failing_logs() -> None:
    raise ExceptionGroup("tasks", [BrokenPipeError(), ConnectionResetError()])


def test_closed_pipe_in_a_task_ends_silently() -> None:
    group = command_group()
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(group.__dict__["_table"], "logs", (f"{__name__}:failing_logs", ""))
        result = CliRunner().invoke(group, ["logs"])
    assert (result.exit_code, result.output) == (1, "")


def test_help_loads_no_command() -> None:
    heavy = {"aiohttp", "click", "msgspec", "yaml", "pincompute.base", "pincompute.cli", "pincompute.engine"}
    assert not heavy & loaded_modules("--help")


@pytest.mark.usefixtures("unreachable_desk")
@pytest.mark.parametrize(
    "words",
    ["get", "why web", "logs web", "wait web", "deploy web.yaml", "delete web", "scale web 2", "whoami", "project me"],
)
def test_commands_of_a_desk_load_few_modules(words: str) -> None:
    """Each of the heavy modules takes up to a tenth of a second, longer than the desk's response."""
    Path("web.yaml").write_text("kind: PinterestService\n")
    heavy = {"aiohttp", "cryptography", "email", "http", "random", "secrets", "structlog", "tomllib", "yaml"}
    ours = {"api.kinds", "api.workload", "controller", "engine", "kube.client", "kube.errors", "planning"}
    found = loaded_modules(*words.split())
    assert "pincompute.cli.desk_client" in found
    assert not (heavy | {f"pincompute.{each}" for each in ours}) & found


@pytest.mark.parametrize("text", ["a: 1\n---\nb: 2", "--- {a: 1}\n--- {b: 2}", "a: 1\n...\nb: 2", "a: 1\r---\rb: 2"])
def test_file_with_several_documents_is_read_as_set(text: str) -> None:
    Path("two.yaml").write_text(text, newline="")
    assert "pincompute.cli.files" in loaded_modules("deploy", "two.yaml")


@pytest.mark.parametrize("desk", ["http://desk.example.com", "desk.example.com", "ftp://127.0.0.1"])
def test_login_rejects_unencrypted_desk(desk: str) -> None:
    result = run("login", desk)
    assert result.exit_code == 2
    assert f"{desk} must start with https://" in result.stderr
    assert "next: pin login https://…" in result.stderr


def test_login_does_not_replace_another_platform(tmp_path: Path) -> None:
    write_context(tmp_path / "state", Context(name="main", desk="http://127.0.0.1:1", token="secret", kubeconfig=""))
    result = run("login", "https://desk.example.com")
    assert "the name 'main' is taken by the platform at http://127.0.0.1:1" in result.stderr
    assert "next: pin login https://desk.example.com --name NAME" in result.stderr
    # Signing out works without a login, too.
    assert run("login", "--out").output == "main: signed out\n"


def test_login_names_address_of_unreachable_desk() -> None:
    result = run("login", "http://127.0.0.1:1")
    assert "no desk answers at http://127.0.0.1:1" in result.stderr


def test_trust_prints_a_command_for_each_program_and_installs_nothing(tmp_path: Path) -> None:
    file = tmp_path / "my state" / "ca.crt"
    context = Context(
        name="main", desk="", token="", kubeconfig="", web_authority=str(file), https_domain="localhost:8443"
    )
    write_context(tmp_path / "state", context)
    result = run("trust")
    assert result.exit_code == 0, result.output
    assert f"curl --cacert '{file}' https://NAME.PROJECT.localhost:8443" in result.output
    assert [line.split()[0] for line in result.output.splitlines()[4:]] == ["curl", "system", "Chromium", "Firefox"]
    assert not file.exists()


@pytest.mark.usefixtures("unreachable_desk")
def test_trust_of_a_platform_without_https() -> None:
    result = run("trust")
    assert result.exit_code == 1
    assert "platform main serves no HTTPS of its own  [NoHttps]" in result.stderr
