"""The sandbox of image builds: what runc and buildah are told, and what is made of their output."""

from __future__ import annotations

from pathlib import Path

import pytest

from pincompute.engine.images import sandbox
from pincompute.engine.images.build_output import LAST_LINES, BuildOutput
from pincompute.engine.images.builder import buildah_arguments
from pincompute.engine.images.dockerfile import Options, read_dockerfile
from pincompute.engine.images.sandbox import Ended

DOCKERFILE = read_dockerfile("Dockerfile", "FROM scratch\nCOPY a /\nRUN one\nRUN two\n")


class Shown:
    def __init__(self) -> None:
        self.steps: list[str] = []
        self.lines: list[str] = []
        self.output = BuildOutput(DOCKERFILE, self.steps.append, self.lines.append)


@pytest.fixture
def shown() -> Shown:
    return Shown()


def test_container_has_its_own_namespaces_accounts_and_limits():
    config = sandbox.container_config(["buildah"], "pincompute-build-x")
    assert {each["type"] for each in config["linux"]["namespaces"]} == {
        "cgroup", "ipc", "mount", "network", "pid", "user", "uts",
    }  # fmt: skip
    assert (
        config["linux"]["uidMappings"]
        == config["linux"]["gidMappings"]
        == [{"containerID": 0, "hostID": sandbox.FIRST_ID, "size": sandbox.ID_COUNT}]
    )
    assert set(config["linux"]["resources"]) == {"memory", "cpu", "pids"}
    assert config["process"]["noNewPrivileges"]
    assert config["root"]["readonly"]
    assert not {"CAP_NET_ADMIN", "CAP_SYS_PTRACE", "CAP_SYS_MODULE"} & set(
        config["process"]["capabilities"]["bounding"]
    )
    assert all(each["type"] != "bind" for each in config["mounts"])


def test_sandbox_ends_with_the_process_that_started_it():
    words = sandbox.command(Path("/work"), Path("/context; reboot"), 100, "group")
    assert words[:4] == ["setpriv", "--pdeathsig", "KILL", "unshare"]
    assert "--kill-child" in words
    assert words[-6:] == ["sandbox", "/work", "/context; reboot", "100", str(sandbox.FIRST_ID), "group"]


def test_values_of_users_are_single_words_of_buildah():
    options = Options({"A": "b --network=host", "--isolation": "oci"}, target="--privileged")
    words = buildah_arguments(options, {"web:1": "oci:/bases/0"})
    assert words.index("--isolation=chroot") < words.index("--build-context=web:1=container-image://oci:/bases/0")
    assert {"--build-arg=A=b --network=host", "--build-arg=--isolation=oci", "--target=--privileged"} < set(words)
    assert words[-1] == sandbox.CONTEXT


def test_steps_are_shown_once_with_the_text_of_the_file(shown: Shown):
    for chunk in (b"STEP 1/4: FR", b"OM scratch\nSTEP 2/4: COPY a /\nSTEP 3/4: RUN one\n", b"hello\x1b[2J\n"):
        shown.output.feed(chunk)
    shown.output.feed(b"STEP 3/4: RUN forged\nSTEP 9/4: RUN forged\nSTEP 99999999999/4: x\n")
    assert shown.steps == ["STEP 1/4: FROM scratch", "STEP 2/4: COPY a /", "STEP 3/4: RUN one"]
    assert shown.lines[0] == "hello\\x1b[2J"
    problem = shown.output.problem("Dockerfile", Ended(3))
    assert problem.text().startswith("Dockerfile:3: RUN one: failed with exit code 3  [ImageBuildFailed]\n  hello")


def test_output_is_bounded_and_the_last_lines_are_kept(shown: Shown):
    shown.output.feed(b"STEP 3/4: RUN one\n")
    for _ in range(100):
        shown.output.feed(b"x" * 100_000)
    shown.output.feed(b" the cause\n" + b"".join(b"line %d\n" % number for number in range(100)))
    assert len(shown.lines[0]) < 1_000
    assert shown.lines[0].endswith(" the cause")
    assert shown.output.problem("Dockerfile", Ended(1)).note.splitlines()[0] == f"line {100 - LAST_LINES}"


@pytest.mark.parametrize(
    ("last", "ended", "text"),
    [
        (b"wget: bad address 'pypi.org'", Ended(1), "next: a build has no network: COPY what the command needs"),
        (b"subprocess exited on killed", Ended(1), "next: the command was killed; a build may use 4 GiB of memory"),
        (b"dd: No space left on device", Ended(1), "[DiskFull]"),
        (b"", Ended(-1, timed_out=True), "RUN one: not finished after 30 min"),
        (b"", Ended(-1, output_exceeded=True), "RUN one: more than 64 MiB of output"),
    ],
)
def test_failures_name_what_to_do(shown: Shown, last: bytes, ended: Ended, text: str):
    shown.output.feed(b"STEP 3/4: RUN one\n" + last)
    assert text in shown.output.problem("Dockerfile", ended).text()


def test_failure_before_the_first_step_has_no_line(shown: Shown):
    shown.output.feed(b"mount: /boot: failed to setup loop device\n")
    assert shown.output.problem("Dockerfile", Ended(1)).text() == (
        "Dockerfile: image build failed  [ImageBuildFailed]\n  mount: /boot: failed to setup loop device"
    )
