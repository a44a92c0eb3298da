"""First sync by the informer of `kubernetes`, the official Python client: `kubernetes_informer PODS`."""

from __future__ import annotations

import sys
import threading

import kubernetes
from kubernetes.informer import ADDED, SharedInformer
from measured_sync import measure


def main(pods: int) -> None:
    kubernetes.config.load_kube_config()
    kubernetes.client.VersionApi().get_code()
    informer = SharedInformer(kubernetes.client.CoreV1Api().list_pod_for_all_namespaces)
    complete = threading.Event()
    count = 0

    def on_added(_: object) -> None:
        nonlocal count
        count += 1
        if count >= pods:
            complete.set()

    def sync() -> int:
        informer.add_event_handler(ADDED, on_added)
        informer.start()
        complete.wait()
        return len(informer.cache.list_keys())

    measure(sync)


main(int(sys.argv[1]))
