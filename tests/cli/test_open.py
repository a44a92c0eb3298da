"""`pin open`: the address, and the file that leads a browser to it."""

from __future__ import annotations

import webbrowser
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from fake_desk import fake_desk
from pincompute.api.session import EndedSessions, SessionLink
from pincompute.main import command_group

CODE = "c" * 43


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    folder = tmp_path / "state"
    monkeypatch.setenv("PIN_STATE", str(folder))
    monkeypatch.setenv("PIN_PROJECT", "ads")
    for each in ("DISPLAY", "WAYLAND_DISPLAY"):
        monkeypatch.delenv(each, raising=False)
    with fake_desk(folder, respond_to_open):
        yield folder


def respond_to_open(method: str, path: str) -> tuple[int, object]:
    if (method, path) == ("POST", "/session/link"):
        return 201, SessionLink(code=CODE, expires="2026-01-31T12:01:00+00:00")
    if method == "DELETE" and path.startswith("/v1/sessions"):
        return 200, EndedSessions(user="ann", ended=1 if "ann" in path else 2)
    return 404, None


def run_pin(*words: str) -> Result:
    return CliRunner().invoke(command_group(), list(words))


@pytest.mark.usefixtures("state")
def test_prints_the_address_without_a_display() -> None:
    for words, path in (((), "/"), (("web",), "/ui/projects/ads/workloads/web"), (("--print",), "/")):
        shown = run_pin("open", *words)
        assert shown.exit_code == 0, shown.output
        address, _, fragment = shown.stdout.strip().partition("#")
        assert address.startswith("http://127.0.0.1:")
        assert address.partition("//")[2].partition("/")[2] == path[1:]
        assert fragment == f"signin={CODE}"


def test_opens_a_private_file_that_leads_to_the_address(state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The code is in no argument of a process: those can be read by other users of the machine."""
    opened: list[str] = []

    def open_address(address: str) -> bool:
        opened.append(address)
        return True

    monkeypatch.setenv("DISPLAY", ":0")
    monkeypatch.setattr(webbrowser, "open", open_address)
    shown = run_pin("open")
    (address,) = opened
    file = state / "main" / "open.html"
    assert address == file.as_uri()
    assert oct(file.stat().st_mode & 0o777) == "0o600"
    assert f"#signin={CODE}" in file.read_text()
    assert CODE not in shown.output
    assert shown.stdout.startswith("opened http://127.0.0.1:")


@pytest.mark.usefixtures("state")
def test_prints_the_address_if_no_browser_opens(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DISPLAY", ":0")

    def open_nothing(_: str) -> bool:
        return False

    monkeypatch.setattr(webbrowser, "open", open_nothing)
    assert f"#signin={CODE}" in run_pin("open").stdout


@pytest.mark.usefixtures("state")
def test_ends_sessions() -> None:
    assert run_pin("open", "--sign-out").stdout == "ann: 2 sessions ended\n"
    assert run_pin("open", "--sign-out", "--user", "ann").stdout == "ann: 1 session ended\n"
    assert "--user needs --sign-out" in run_pin("open", "--user", "ann").output


@pytest.mark.usefixtures("state")
def test_needs_a_desk() -> None:
    refused = run_pin("open", "--kubeconfig", "/nonexistent")
    assert refused.exit_code != 0
