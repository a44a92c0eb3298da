"""First sync by lightkube, which has no informer: pages of a list into a dict, and a watch from there."""

from __future__ import annotations

import threading

from lightkube import ALL_NS, Client
from lightkube.resources.core_v1 import Namespace, Pod
from measured_sync import measure

PAGE = 500


def main() -> None:
    client = Client()
    client.get(Namespace, "default")
    items = {}

    def watch(version: str) -> None:
        for _, pod in client.watch(Pod, namespace=ALL_NS, resource_version=version):
            items[pod.metadata.namespace, pod.metadata.name] = pod

    def sync() -> int:
        pods = client.list(Pod, namespace=ALL_NS, chunk_size=PAGE)
        for pod in pods:
            items[pod.metadata.namespace, pod.metadata.name] = pod
        threading.Thread(target=watch, args=(pods.resourceVersion,), daemon=True).start()
        return len(items)

    measure(sync)


main()
