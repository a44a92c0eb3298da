"""Every kind on a real node through the CLI: deployed, changed and deleted."""

from __future__ import annotations

import asyncio
import json
from contextlib import aclosing
from copy import deepcopy
from pathlib import Path

import pytest
import yaml

from busybox import IMAGE, TEMPLATE
from cli_user import CliUser, wait_all_gone
from pincompute.api.names import ENGINE, RUN_NOW_ANNOTATION, WORKLOAD_LABEL
from pincompute.controller.resources import CUSTOM_RESOURCES, WORKLOAD_NATIVES
from pincompute.engine.platform import Platform
from pincompute.kube.client import Client
from pincompute.kube.resource import PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES, PODS, Object
from real_platform import wait_until

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
# All ranks connect to the master; in the second run one rank fails.
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
def person(real_platform: Platform, tmp_path: Path) -> CliUser:
    return CliUser(real_platform, tmp_path)


@pytest.fixture
async def infra(client: Client) -> str:
    """A project without restrictions on pods, for infrastructure."""
    projects = CUSTOM_RESOURCES["Project"]
    await client.apply(INFRASTRUCTURE, projects, manager=ENGINE)
    await wait_until(client, projects, "", is_ready, "infra")
    return "infra"


async def deploy_document(person: CliUser, name: str, text: str, code: int = 0) -> str:
    (person.folder / f"{name}.yaml").write_text(text)
    return await person.pin("deploy", f"{name}.yaml", code=code)


async def listed(person: CliUser, project: str = "me") -> list[list[str]]:
    return [line.split() for line in (await person.pin("get", "--project", project)).splitlines()]


async def delete_completely(client: Client, person: CliUser, name: str, project: str = "me") -> None:
    """Delete a workload; return when all of its objects are gone."""
    await person.pin("delete", name, "--project", project)
    async with asyncio.timeout(120):
        for resource in (*WORKLOAD_NATIVES.values(), PODS):
            if resource is not PERSISTENT_VOLUME_CLAIMS:
                await wait_all_gone(client, resource, project, labels=f"{WORKLOAD_LABEL}={name}")


async def test_failed_task_is_reported_and_rerun_succeeds(client: Client, person: CliUser) -> None:
    output = await deploy_document(person, "count", JOB_SET, code=1)
    assert "1 of 3 tasks failed with exit code 1 (task 1)" in output
    assert "| 1 | part 1 of 3" in output
    assert "next: pin rerun count" in output
    assert ["count@1", "JobSet", "2/3", "TaskFailed"] in await listed(person)
    status = (await client.get(CUSTOM_RESOURCES["PinterestJobSet"], "count", "me"))["status"]
    assert [(each["reason"], each["tasks"], each["exitCode"]) for each in status["failures"]] == [
        ("TaskFailed", "1", 1)
    ]
    assert "part 2 of 3" in await person.pin("logs", "count")
    assert "succeeded" in await deploy_document(person, "count", f"{JOB_SET}  attempts: [{{tasks: failed}}]\n")
    assert ["count@1.2", "JobSet", "3/3", "Succeeded"] in await listed(person)
    await delete_completely(client, person, "count")


async def test_cron_job_runs_on_demand(client: Client, person: CliUser) -> None:
    assert "nightly@1" in await deploy_document(person, "nightly", CRON_JOB)
    cron_jobs = CUSTOM_RESOURCES["PinterestCronJob"]
    now = {"metadata": {"annotations": {RUN_NOW_ANNOTATION: "1"}}}
    await client.patch(cron_jobs, "nightly", "me", now, style="merge", manager=ENGINE)
    seen = await wait_until(client, cron_jobs, "me", lambda seen: seen["status"].get("lastRun"), "nightly")
    assert seen["status"]["lastRun"]["outcome"] == "succeeded"
    assert await person.pin("logs", "nightly") == "swept\n"
    await delete_completely(client, person, "nightly")


async def test_stateful_set_keeps_its_storage(client: Client, person: CliUser, infra: str) -> None:
    assert "db.infra:8080" in await deploy_document(person, "db", STATEFUL_SET)
    assert "db@2" in await deploy_document(person, "db", f"{STATEFUL_SET}  environment: {{CHANGED: now}}\n")
    assert ["db@2", "StatefulSet", "2/2", "Available", "db.infra:8080"] in await listed(person, infra)
    # Each pod read the file of its predecessor of the same name, although both are unprivileged.
    lines = (await person.pin("logs", "db", "--project", infra)).splitlines()
    assert sorted(lines) == ["0 | db-0", "1 | db-1"]
    await deploy_document(person, "db", STATEFUL_SET.replace("10Mi", "20Mi"))
    await wait_until(
        client,
        PERSISTENT_VOLUME_CLAIMS,
        infra,
        lambda seen: seen["status"]["capacity"]["storage"] == "20Mi",
        "data-db-1",
    )
    volumes = {each["spec"]["volumeName"] for each in (await client.list(PERSISTENT_VOLUME_CLAIMS, infra)).items}
    assert {file.name for file in (person.platform.home.data / "volumes").iterdir()} >= volumes
    await delete_completely(client, person, "db", infra)
    kept = [
        each["metadata"]["name"]
        for each in (await client.list(PERSISTENT_VOLUME_CLAIMS, infra, labels=f"{WORKLOAD_LABEL}=db")).items
    ]
    assert kept == ["data-db-0", "data-db-1"]
    for each in kept:
        await client.delete(PERSISTENT_VOLUME_CLAIMS, each, infra)
    async with asyncio.timeout(120):
        for each in volumes:
            await wait_all_gone(client, PERSISTENT_VOLUMES, "", fields=f"metadata.name={each}")
    assert not volumes & {file.name for file in (person.platform.home.data / "volumes").iterdir()}


async def test_training_workers_connect_and_failure_is_reported(client: Client, person: CliUser) -> None:
    assert "3 of 3 replicas succeeded" in await deploy_document(person, "ranking", yaml.safe_dump(TRAINING_JOB))
    assert ["ranking@1", "TrainingJob", "3/3", "Succeeded"] in await listed(person)
    output = (await person.pin("logs", "ranking")).splitlines()
    assert {f"{role} | rank {rank} of 3 by ranking-master-0" for rank, role in enumerate(ROLES)} <= set(output)
    assert output.count("worker-0 | welcome") == output.count("worker-1 | welcome") == 1
    pods = (await client.list(PODS, "me", labels=f"{WORKLOAD_LABEL}=ranking")).items
    # No pod was scheduled before all had been created.
    made = max(each["metadata"]["creationTimestamp"] for each in pods)
    assert min(_since(each, "PodScheduled") for each in pods) >= made
    fails = deepcopy(TRAINING_JOB)
    fails["spec"]["environment"]["FAILS"] = "2"
    fails["spec"]["roles"] = {"worker": {"replicas": 2, "restart": "never"}}
    del fails["spec"]["workers"]
    output = await deploy_document(person, "ranking", yaml.safe_dump(fails), code=1)
    assert "worker 1 failed with exit code 3: last line: bad shard 17" in output
    await delete_completely(client, person, "ranking")


async def test_elastic_training_scales_while_it_runs(client: Client, person: CliUser) -> None:
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
    first = await wait_until(client, PODS, "me", _runs, "stretchy-worker-0")
    assert "1 replica -> 2" in await person.pin("scale", "stretchy", "2", "--no-wait")
    await wait_until(client, PODS, "me", _runs, "stretchy-worker-1")
    still = await client.get(PODS, "stretchy-worker-0", "me")
    assert still["metadata"]["uid"] == first["metadata"]["uid"]
    for number in range(2):
        async with aclosing(client.logs("me", f"stretchy-worker-{number}", follow=True)) as lines:
            assert await anext(lines) == "1:2 by stretchy-worker-0:23456"
    assert "cancelled by" in await person.pin("cancel", "stretchy", "--because", "enough")
    pods = (await client.list(PODS, "me", labels=f"{WORKLOAD_LABEL}=stretchy")).items
    assert all("deletionTimestamp" in each["metadata"] for each in pods)
    assert "cancelled by" in await person.pin("get", "stretchy")
    await delete_completely(client, person, "stretchy")


def _runs(pod: Object) -> bool:
    return any("running" in each["state"] for each in pod["status"].get("containerStatuses", ()))


async def test_tensorflow_training_has_cluster_spec(client: Client, person: CliUser) -> None:
    spec = {"framework": "tensorflow", "image": IMAGE, "workers": 2, "command": ["sh", "-c", "echo $TF_CONFIG"]}
    spam = {**TRAINING_JOB, "metadata": {"name": "spam"}, "spec": {**spec, "template": yaml.safe_load(TEMPLATE)}}
    assert "3 of 3 replicas succeeded" in await deploy_document(person, "spam", yaml.safe_dump(spam))
    lines = (await person.pin("logs", "spam")).splitlines()
    configs = {name.strip(): json.loads(text) for name, _, text in (line.partition(" | ") for line in lines)}
    assert {name: f"{each['task']['type']}-{each['task']['index']}" for name, each in configs.items()} == {
        name: name for name in ("chief-0", "worker-0", "worker-1")
    }
    assert {role: len(all_) for role, all_ in configs["chief-0"]["cluster"].items()} == {"chief": 1, "worker": 2}
    await delete_completely(client, person, "spam")


def _since(pod: Object, condition: str) -> str:
    return next(each["lastTransitionTime"] for each in pod["status"]["conditions"] if each["type"] == condition)


async def test_daemon_runs_on_every_node(client: Client, person: CliUser, infra: str) -> None:
    assert "watcher@1" in await deploy_document(person, "watcher", DAEMON)
    # The daemon is ready at its start, and may print later.
    async with person.pin_lines("logs", "watcher", "--follow", "--project", infra) as lines:
        assert await anext(lines) == "watching"
    assert await person.pin("logs", "watcher", "--project", infra) == "watching\n"
    # Its pods are replaced one after the other.
    output = await deploy_document(person, "watcher", f"{DAEMON}  environment: {{CHANGED: now}}\n")
    assert "watcher@2" in output
    (summary,) = json.loads(await person.pin("get", "--project", infra, "-o", "json"))
    assert (summary["kind"], summary["ready"], summary["wanted"]) == ("PinterestDaemon", 1, 1)
    await delete_completely(client, person, "watcher", infra)


def is_ready(project: Object) -> bool:
    return any(each["status"] == "True" for each in project.get("status", {}).get("conditions", ()))
