"""Every kind on a real node, by the command that people type: to its goal, through a change, and to its end."""

from __future__ import annotations

import asyncio
import json
from contextlib import aclosing
from copy import deepcopy
from pathlib import Path

import pytest
import yaml

from busybox import IMAGE, TEMPLATE
from person import Person, all_gone
from pincompute.api.names import ENGINE, RUN_NOW, WORKLOAD
from pincompute.controller.resources import NATIVES, NOUNS
from pincompute.engine.platform import Platform
from pincompute.kube.client import Client
from pincompute.kube.resource import CLAIMS, PODS, VOLUMES, Object
from real_platform import until

pytestmark = pytest.mark.cluster

JOB_SET = f"""\
apiVersion: pinterest.com/v1
kind: PinterestJobSet
metadata: {{name: count}}
spec:
  image: {IMAGE}
  command: [sh, -c, 'read TASK < /etc/task/number; echo part $TASK of $PIN_TASKS; [ $TASK$PIN_ATTEMPT != 11 ]']
  tasks: 3
  retries: 0
  template: {TEMPLATE}
"""

CRON_JOB = f"""\
apiVersion: pinterest.com/v1
kind: PinterestCronJob
metadata: {{name: nightly}}
spec:
  image: {IMAGE}
  command: [echo, swept]
  schedule: 30 3 1 1 *
  template: {TEMPLATE}
"""

SERVE = "cat /data/first 2>&- || hostname > /data/first; trap exit TERM; httpd -f -p $PORT -h /data & wait"
STATEFUL_SET = f"""\
apiVersion: pinterest.com/v1
kind: PinterestStatefulSet
metadata: {{name: db, project: infra}}
spec:
  image: {IMAGE}
  command: [sh, -c, '{SERVE}']
  port: 8080
  replicas: 2
  storage: 10Mi
  storagePath: /data
  template: {TEMPLATE}
"""

DAEMON = f"""\
apiVersion: pinterest.com/v1
kind: PinterestDaemon
metadata: {{name: watcher, project: infra}}
spec:
  image: {IMAGE}
  command: [sh, -c, 'trap exit TERM; echo watching; sleep 1000 & wait']
  template: {TEMPLATE}
"""
# All that train together meet at the one that leads; in the second run one of them does not come.
MEET = """\
[ $RANK = $FAILS ] && echo bad shard 17 && exit 3
echo rank $RANK of $WORLD_SIZE by $MASTER_ADDR
if [ $RANK = 0 ]; then for i in 1 2; do nc -l -p $MASTER_PORT -e echo welcome; done
else until nc $MASTER_ADDR $MASTER_PORT < /dev/null | grep welcome; do sleep 0.2; done; fi
"""
ROLES = ("master-0", "worker-0", "worker-1")
TRAINING_JOB: Object = {
    "apiVersion": "pinterest.com/v1",
    "kind": "PinterestTrainingJob",
    "metadata": {"name": "ranking"},
    "spec": {
        "image": IMAGE,
        "command": ["sh", "-c", MEET],
        "environment": {"FAILS": "none"},
        "retries": 0,
        "workers": 2,
        "template": yaml.safe_load(TEMPLATE),
    },
}
INFRASTRUCTURE: Object = {
    "metadata": {"name": "infra"},
    "spec": {"owner": "infra", "review": "open", "quota": {"infrastructure": {}, "on-demand": {}}},
}


@pytest.fixture
def person(real_platform: Platform, tmp_path: Path) -> Person:
    return Person(real_platform, tmp_path)


@pytest.fixture
async def infra(client: Client) -> str:
    """A project whose programs may have any right."""
    projects = NOUNS["Project"]
    await client.apply(INFRASTRUCTURE, projects, manager=ENGINE)
    await until(client, projects, "", is_ready, "infra")
    return "infra"


async def deploy(person: Person, name: str, text: str, code: int = 0) -> str:
    (person.folder / f"{name}.yaml").write_text(text)
    return await person.pin("deploy", f"{name}.yaml", code=code)


async def listed(person: Person, project: str = "me") -> list[list[str]]:
    return [line.split() for line in (await person.pin("get", "--project", project)).splitlines()]


async def ended(client: Client, person: Person, name: str, project: str = "me") -> None:
    """Nothing that it became is left."""
    await person.pin("delete", name, "--project", project)
    async with asyncio.timeout(120):
        for resource in (*NATIVES.values(), PODS):
            if resource is not CLAIMS:
                await all_gone(client, resource, project, labels=f"{WORKLOAD}={name}")


async def test_a_job_set_says_which_task_failed_and_why_and_another_attempt_ends_it(
    client: Client, person: Person
) -> None:
    told = await deploy(person, "count", JOB_SET, code=1)
    assert "1 of 3 tasks failed with exit code 1 (task 1)" in told
    assert "| 1 | part 1 of 3" in told
    assert "next: pin rerun count" in told
    assert ["count@1", "JobSet", "2/3", "TaskFailed"] in await listed(person)
    status = (await client.get(NOUNS["PinterestJobSet"], "count", "me"))["status"]
    assert [(each["reason"], each["tasks"], each["exitCode"]) for each in status["failures"]] == [
        ("TaskFailed", "1", 1)
    ]
    assert "part 2 of 3" in await person.pin("logs", "count")
    assert "succeeded" in await deploy(person, "count", f"{JOB_SET}  attempts: [{{tasks: failed}}]\n")
    assert ["count@1.2", "JobSet", "3/3", "Succeeded"] in await listed(person)
    await ended(client, person, "count")


async def test_a_cron_job_runs_when_it_is_told_to(client: Client, person: Person) -> None:
    assert "nightly@1" in await deploy(person, "nightly", CRON_JOB)
    cron_jobs = NOUNS["PinterestCronJob"]
    now = {"metadata": {"annotations": {RUN_NOW: "1"}}}
    await client.patch(cron_jobs, "nightly", "me", now, style="merge", manager=ENGINE)
    seen = await until(client, cron_jobs, "me", lambda seen: seen["status"].get("lastRun"), "nightly")
    assert seen["status"]["lastRun"]["outcome"] == "succeeded"
    assert await person.pin("logs", "nightly") == "swept\n"
    await ended(client, person, "nightly")


async def test_a_stateful_set_keeps_its_storage_through_a_change(client: Client, person: Person, infra: str) -> None:
    assert "db.infra:8080" in await deploy(person, "db", STATEFUL_SET)
    assert "db@2" in await deploy(person, "db", f"{STATEFUL_SET}  environment: {{CHANGED: now}}\n")
    assert ["db@2", "StatefulSet", "2/2", "Available", "db.infra:8080"] in await listed(person, infra)
    # Each found what its forerunner of the same name had written, though neither is root.
    lines = (await person.pin("logs", "db", "--project", infra)).splitlines()
    assert sorted(lines) == ["0 | db-0", "1 | db-1"]
    await deploy(person, "db", STATEFUL_SET.replace("10Mi", "20Mi"))
    await until(client, CLAIMS, infra, lambda seen: seen["status"]["capacity"]["storage"] == "20Mi", "data-db-1")
    volumes = {each["spec"]["volumeName"] for each in (await client.list(CLAIMS, infra)).items}
    assert {file.name for file in (person.platform.home.data / "volumes").iterdir()} >= volumes
    await ended(client, person, "db", infra)
    kept = [each["metadata"]["name"] for each in (await client.list(CLAIMS, infra, labels=f"{WORKLOAD}=db")).items]
    assert kept == ["data-db-0", "data-db-1"]
    for each in kept:
        await client.delete(CLAIMS, each, infra)
    async with asyncio.timeout(120):
        for each in volumes:
            await all_gone(client, VOLUMES, "", fields=f"metadata.name={each}")
    assert not volumes & {file.name for file in (person.platform.home.data / "volumes").iterdir()}


async def test_copies_train_together_and_the_one_that_fails_is_told(client: Client, person: Person) -> None:
    assert "3 of 3 copies have ended well" in await deploy(person, "ranking", yaml.safe_dump(TRAINING_JOB))
    assert ["ranking@1", "TrainingJob", "3/3", "Succeeded"] in await listed(person)
    said = (await person.pin("logs", "ranking")).splitlines()
    assert {f"{role} | rank {rank} of 3 by ranking-master-0" for rank, role in enumerate(ROLES)} <= set(said)
    assert said.count("worker-0 | welcome") == said.count("worker-1 | welcome") == 1
    pods = (await client.list(PODS, "me", labels=f"{WORKLOAD}=ranking")).items
    # None was handed to the scheduler before all were there.
    made = max(each["metadata"]["creationTimestamp"] for each in pods)
    assert min(_since(each, "PodScheduled") for each in pods) >= made
    fails = deepcopy(TRAINING_JOB)
    fails["spec"]["environment"]["FAILS"] = "2"
    fails["spec"]["roles"] = {"worker": {"replicas": 2, "restart": "never"}}
    del fails["spec"]["workers"]
    told = await deploy(person, "ranking", yaml.safe_dump(fails), code=1)
    assert "worker 1 ended with exit code 3: its last line: bad shard 17" in told
    await ended(client, person, "ranking")


async def test_what_is_elastic_gets_another_copy_while_it_trains(client: Client, person: Person) -> None:
    spec = {
        "image": IMAGE,
        "workers": 1,
        "elastic": {"minimum": 1, "maximum": 2},
        "command": ["sh", "-c", "trap exit TERM; echo $PET_NNODES by $PET_RDZV_ENDPOINT; sleep 1000 & wait"],
        "template": yaml.safe_load(TEMPLATE),
    }
    stretchy = {**TRAINING_JOB, "metadata": {"name": "stretchy"}, "spec": spec}
    (person.folder / "stretchy.yaml").write_text(yaml.safe_dump(stretchy))
    await person.pin("deploy", "stretchy.yaml", "--no-wait")
    first = await until(client, PODS, "me", _runs, "stretchy-worker-0")
    assert "1 copy -> 2" in await person.pin("scale", "stretchy", "2", "--no-wait")
    await until(client, PODS, "me", _runs, "stretchy-worker-1")
    still = await client.get(PODS, "stretchy-worker-0", "me")
    assert still["metadata"]["uid"] == first["metadata"]["uid"]
    for number in range(2):
        async with aclosing(client.logs("me", f"stretchy-worker-{number}", follow=True)) as lines:
            assert await anext(lines) == "1:2 by stretchy-worker-0:23456"
    await ended(client, person, "stretchy")


def _runs(pod: Object) -> bool:
    return any("running" in each["state"] for each in pod["status"].get("containerStatuses", ()))


async def test_a_training_with_tensorflow_knows_everybody(client: Client, person: Person) -> None:
    spec = {"framework": "tensorflow", "image": IMAGE, "workers": 2, "command": ["sh", "-c", "echo $TF_CONFIG"]}
    spam = {**TRAINING_JOB, "metadata": {"name": "spam"}, "spec": {**spec, "template": yaml.safe_load(TEMPLATE)}}
    assert "3 of 3 copies have ended well" in await deploy(person, "spam", yaml.safe_dump(spam))
    lines = (await person.pin("logs", "spam")).splitlines()
    told = {who.strip(): json.loads(said) for who, _, said in (line.partition(" | ") for line in lines)}
    assert {who: f"{each['task']['type']}-{each['task']['index']}" for who, each in told.items()} == {
        who: who for who in ("chief-0", "worker-0", "worker-1")
    }
    assert {role: len(all_) for role, all_ in told["chief-0"]["cluster"].items()} == {"chief": 1, "worker": 2}
    await ended(client, person, "spam")


def _since(pod: Object, condition: str) -> str:
    return next(each["lastTransitionTime"] for each in pod["status"]["conditions"] if each["type"] == condition)


async def test_a_daemon_is_on_every_node_of_the_projects_that_may_have_one(
    client: Client, person: Person, infra: str
) -> None:
    assert "watcher@1" in await deploy(person, "watcher", DAEMON)
    # It is ready as soon as it was started, and may say so later.
    async with person.hearing("logs", "watcher", "--follow", "--project", infra) as lines:
        assert await anext(lines) == "watching"
    assert await person.pin("logs", "watcher", "--project", infra) == "watching\n"
    # Its copies make room for their successors one after the other.
    told = await deploy(person, "watcher", f"{DAEMON}  environment: {{CHANGED: now}}\n")
    assert "watcher@2" in told
    (summary,) = json.loads(await person.pin("get", "--project", infra, "-o", "json"))
    assert (summary["kind"], summary["ready"], summary["wanted"]) == ("PinterestDaemon", 1, 1)
    await ended(client, person, "watcher", infra)


def is_ready(project: Object) -> bool:
    return any(each["status"] == "True" for each in project.get("status", {}).get("conditions", ()))
