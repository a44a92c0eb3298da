"""Fixtures: Debian's nginx and ZooKeeper."""

from __future__ import annotations

from ingress_agent import nginx as nginx
from zookeeper_server import shared_zookeeper as shared_zookeeper, zookeeper as zookeeper
