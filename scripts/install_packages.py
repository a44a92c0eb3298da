"""Installs the programs that tests with real nodes and images need, as root on Debian."""

from __future__ import annotations

import os
import sys

from pincompute.base.problem import Refused
from pincompute.engine import debian
from pincompute.engine.nodes import machine

if os.geteuid() == 0:
    try:
        debian.ensure_programs(
            *machine.PROGRAMS, "docker-registry", "nginx", "buildah", "mmdebstrap", "busybox", "promtool"
        )
    except Refused as refused:
        # The tests go on without them and report which ones they skipped.
        print(refused.text(), file=sys.stderr)
