"""Secrets on a real node: before the program starts, after a rotation, while the store is down, and for no one else."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import yaml

from busybox import IMAGE
from cli_user import CliUser, wait_all_gone
from pincompute.api.names import ENGINE, WORKLOAD_LABEL
from pincompute.base.progress import Progress
from pincompute.controller.resources import CUSTOM_RESOURCES
from pincompute.engine.first_runtime import PARTS_FOLDER
from pincompute.engine.images import own_image, registry
from pincompute.engine.platform import Platform
from pincompute.engine.record import read_record
from pincompute.kube.client import Client
from pincompute.kube.resource import PODS, Object
from real_platform import wait_until
from transcripts import TRANSCRIPTS, replay_transcript, required_platform

pytestmark = pytest.mark.cluster

NUMBER = "910"
NODE_TIMEOUT_S = 240.0
SERVICE = """\
apiVersion: pinterest.com/v1
kind: PinterestService
metadata: {{name: {name}}}
spec:
  image: {image}
  command: [sh, -c, 'test -s $SECRETS_FOLDER/{file} && trap exit TERM; httpd -f -p $PORT -h $SECRETS_FOLDER & wait']
  port: 8080
  secrets: [{reference}]
  template: {{spec: {{securityContext: {{runAsUser: 1000}}}}}}
"""


@pytest.fixture
async def runtime(real_platform: Platform, client: Client) -> AsyncIterator[None]:
    """The bundled parts, for workloads that name secrets only."""
    async with registry.open_registry(real_platform) as images:
        await own_image.push_variants(images, Progress(), ["pincompute-secrets:1"])
    parts = [yaml.safe_load((PARTS_FOLDER / f"{each}-1.yaml").read_text()) for each in ("identity", "secrets")]
    for part in parts:
        part["metadata"]["name"] = part["metadata"]["name"].replace("-1", f"-{NUMBER}")
        part["spec"]["serves"]["fields"] = ["secrets"]
    roll = {"waves": [100], "pauseSeconds": 0}
    names = [each["metadata"]["name"] for each in parts]
    made: tuple[tuple[str, Object], ...] = (
        *(("PinterestSidecar", part) for part in parts),
        ("Runtime", {"metadata": {"name": NUMBER}, "spec": {"parts": names, "roll": roll}}),
    )
    for kind, body in made:
        await client.create(CUSTOM_RESOURCES[kind], body, manager=ENGINE)
    await wait_until(client, CUSTOM_RESOURCES["Runtime"], "", lambda seen: seen.get("status", {}).get("done"), NUMBER)
    yield
    for kind, body in reversed(made):
        await client.delete(CUSTOM_RESOURCES[kind], body["metadata"]["name"])


@pytest.mark.usefixtures("runtime")
async def test_transcript(real_platform: Platform, tmp_path: Path) -> None:
    (page,) = (each for each in TRANSCRIPTS if required_platform(each) == "a runtime with secrets")
    variables = {"PIN_STATE": str(real_platform.home.root.parent), "PIN_NAME": real_platform.name}
    await asyncio.to_thread(replay_transcript, page, tmp_path, variables)


@pytest.mark.usefixtures("runtime")
async def test_pods_wait_for_their_secrets_and_keep_them_while_the_store_is_down(
    real_platform: Platform, client: Client, tmp_path: Path
) -> None:
    person = CliUser(real_platform, tmp_path)
    (tmp_path / "value").write_text("first")
    (tmp_path / "web.yaml").write_text(SERVICE.format(name="holder", image=IMAGE, file="held", reference="held"))
    await person.pin("secret", "create", "held", "--from-file", "value")
    await person.pin("deploy", "web.yaml", "--timeout", str(NODE_TIMEOUT_S))
    with suspended_store(real_platform):
        # The running replica has its copy; a new one waits, and says for what.
        assert await person.pin("shell", "holder", "--", "sh", "-c", "cat $SECRETS_FOLDER/held") == "first"
        await person.pin("scale", "holder", "2", "--no-wait")
        answer = await until_why_has(person, "holder", "SecretsUnavailable")
        assert "the secret store does not answer" in answer
    await person.pin("wait", "holder", "--timeout", str(NODE_TIMEOUT_S))
    await person.pin("delete", "holder")
    await person.pin("secret", "delete", "held")
    async with asyncio.timeout(NODE_TIMEOUT_S):
        await wait_all_gone(client, PODS, "me", labels=f"{WORKLOAD_LABEL}=holder")


@pytest.mark.usefixtures("runtime")
async def test_foreign_workload_waits_until_the_secret_is_granted(
    real_platform: Platform, client: Client, tmp_path: Path
) -> None:
    person = CliUser(real_platform, tmp_path)
    (tmp_path / "value").write_text("theirs")
    await person.pin("project", "create", "lender", "--owner", "ann", "--review", "open")
    await person.pin("secret", "create", "lent", "--from-file", "value", "--project", "lender")
    document = SERVICE.format(name="borrower", image=IMAGE, file="lender.lent", reference="lender/lent")
    (tmp_path / "web.yaml").write_text(document)
    assert "[SecretNotGranted]" in await person.pin("deploy", "web.yaml", code=1)
    # Without the desk nobody has asked for the grant: the store decides alone.
    direct = yaml.safe_load(document.replace("{name: borrower}", "{name: borrower, namespace: me}"))
    await client.create(CUSTOM_RESOURCES["PinterestService"], direct, manager=ENGINE)
    answer = await until_why_has(person, "borrower", "SecretNotGranted")
    assert "pin secret grant lent workload:me/borrower --project lender" in answer
    await person.pin("secret", "grant", "lent", "workload:me/borrower", "--project", "lender")
    await wait_until(client, CUSTOM_RESOURCES["PinterestService"], "me", _is_available, "borrower")
    assert await person.pin("shell", "borrower", "--", "sh", "-c", "cat $SECRETS_FOLDER/lender.lent") == "theirs"
    await person.pin("delete", "borrower")
    async with asyncio.timeout(NODE_TIMEOUT_S):
        await wait_all_gone(client, PODS, "me", labels=f"{WORKLOAD_LABEL}=borrower")
    await person.pin("project", "delete", "lender", "--yes")


@contextmanager
def suspended_store(platform: Platform) -> Iterator[None]:
    """The store does not answer while the block runs. The supervisor restarts only what has ended."""
    record = read_record(platform.home)
    assert record is not None
    pid = record.processes["secret-store"].pid
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


def _is_available(seen: Object) -> bool:
    """A wait of the command line ends at once if it reads the former problem."""
    conditions = seen.get("status", {}).get("conditions", ())
    return any((each["type"], each["status"]) == ("Ready", "True") for each in conditions)


async def until_why_has(person: CliUser, name: str, reason: str) -> str:
    async with asyncio.timeout(NODE_TIMEOUT_S):
        while True:
            _, answer = await person.run_pin("why", name)
            if f"[{reason}]" in answer:
                return answer
            await asyncio.sleep(0.5)
