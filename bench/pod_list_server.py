"""Minimal API server for benchmarks: lists many pods as the real one does, by watch or by pages."""

from __future__ import annotations

import asyncio
import sys
from collections import Counter

import msgspec
from aiohttp import web

from pincompute.api.names import PROJECT_LABEL, WANTED_HASH_ANNOTATION, WORKLOAD_LABEL
from pincompute.objects.content import Object

PAGE = 500
CHUNK_BYTES = 1 << 16
_OWNED = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "controller": True, "blockOwnerDeletion": True}


def pod(number: int) -> Object:
    """A running pod with one container, with all fields that Kubernetes sets."""
    name, node = f"web-{number // 3}-6bd9f5b7c8-{number % 3}", f"node-{number % 300}"
    uid = f"00000000-0000-0000-0000-{number:012}"
    labels = {PROJECT_LABEL: "me", WORKLOAD_LABEL: f"web-{number // 3}", "pod-template-hash": "6bd9f5b7c8"}
    time = "2026-01-31T12:00:00Z"
    conditions = [
        {"type": each, "status": "True", "lastProbeTime": None, "lastTransitionTime": time, "observedGeneration": 1}
        for each in ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled")
    ]
    token = {
        "name": "kube-api-access",
        "projected": {
            "defaultMode": 420,
            "sources": [
                {"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}},
                {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
            ],
        },
    }
    container = {
        "name": "web",
        "image": f"registry.example/web@sha256:{number:064x}",
        "ports": [{"name": "http", "containerPort": 8080, "protocol": "TCP"}],
        "env": [{"name": f"SETTING_{index}", "value": f"the value of setting {index}"} for index in range(6)],
        "resources": {"limits": {"memory": "256Mi"}, "requests": {"cpu": "250m", "memory": "256Mi"}},
        "volumeMounts": [{"name": "kube-api-access", "readOnly": True, "mountPath": "/var/run/secrets/a"}],
        "readinessProbe": {"httpGet": {"path": "/", "port": 8080, "scheme": "HTTP"}, "periodSeconds": 5},
        "securityContext": {"capabilities": {"drop": ["ALL"]}, "allowPrivilegeEscalation": False},
    }
    return {
        "kind": "Pod",
        "apiVersion": "v1",
        "metadata": {
            "name": name,
            "generateName": name[:-1],
            "namespace": "me",
            "uid": uid,
            "resourceVersion": str(number + 1),
            "creationTimestamp": time,
            "labels": labels,
            "annotations": {WANTED_HASH_ANNOTATION: f"{number:016x}"},
            "ownerReferences": [{**_OWNED, "name": name[:-2], "uid": uid}],
            "managedFields": [
                {"manager": manager, "operation": "Update", "apiVersion": "v1", "time": time, "fieldsType": "FieldsV1",
                 "fieldsV1": {f"f:{part}": {f"f:field-{index}": {".": {}, "f:name": {}} for index in range(10)}}}
                for manager, part in (("kube-controller-manager", "spec"), ("kubelet", "status"))
            ],
        },
        "spec": {
            "volumes": [token],
            "containers": [container],
            "restartPolicy": "Always",
            "terminationGracePeriodSeconds": 30,
            "nodeName": node,
            "serviceAccountName": labels[WORKLOAD_LABEL],
            "tolerations": [{"key": "node.kubernetes.io/not-ready", "operator": "Exists", "tolerationSeconds": 300}],
        },
        "status": {
            "phase": "Running",
            "conditions": conditions,
            "hostIP": "10.0.0.1",
            "podIP": f"10.1.{number // 256 % 256}.{number % 256}",
            "startTime": time,
            "containerStatuses": [
                {"name": "web", "state": {"running": {"startedAt": time}}, "ready": True, "started": True,
                 "restartCount": 0, "image": container["image"], "imageID": container["image"],
                 "containerID": f"containerd://{number:064x}"}
            ],
            "qosClass": "Burstable",
        },
    }  # fmt: skip


class PodListServer:
    """Serves one run per namespace: its first watch expires, and the following list has one more pod."""

    def __init__(self, count: int) -> None:
        *self._items, self._extra = (msgspec.json.encode(pod(number)) for number in range(count + 1))
        self._streams: Counter[str] = Counter()

    async def answer(self, request: web.Request) -> web.StreamResponse:
        query = request.query
        if "sendInitialEvents" in query:
            return await self._stream(request)
        if "watch" in query:
            gone = {"kind": "Status", "code": 410, "reason": "Expired", "message": "too old"}
            return web.json_response(gone, status=410)
        begin = int(query.get("continue", "0"))
        end = begin + PAGE
        left = str(end) if end < len(self._items) else ""
        head = msgspec.json.encode({"resourceVersion": "1", "continue": left})
        body = b'{"kind":"PodList","metadata":%b,"items":[%b]}' % (head, b",".join(self._items[begin:end]))
        return web.Response(body=body, content_type="application/json")

    async def _stream(self, request: web.Request) -> web.StreamResponse:
        run = request.match_info["namespace"]
        self._streams[run] += 1
        response = web.StreamResponse()
        await response.prepare(request)
        chunk = bytearray()
        items = self._items if self._streams[run] == 1 else [*self._items, self._extra]
        for item in items:
            chunk += b'{"type":"ADDED","object":%b}\n' % item
            if len(chunk) > CHUNK_BYTES:
                await response.write(chunk)
                chunk = bytearray()
        bookmark = {
            "metadata": {
                "resourceVersion": str(1_000_000 + self._streams[run]),
                "annotations": {"k8s.io/initial-events-end": "true"},
            }
        }
        chunk += msgspec.json.encode({"type": "BOOKMARK", "object": bookmark}) + b"\n"
        await response.write(chunk)
        if self._streams[run] > 1:
            await asyncio.Event().wait()
        return response


async def serve(count: int) -> None:
    application = web.Application()
    application.router.add_get("/api/v1/namespaces/{namespace}/pods", PodListServer(count).answer)
    runner = web.AppRunner(application, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    print(runner.addresses[0][1], flush=True)
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(serve(int(sys.argv[1])))
