"""As root on Debian: brings the programs that real nodes and images need, so that the tests can show them."""

from __future__ import annotations

import os
import sys

from pincompute.base.problem import Refused
from pincompute.engine import debian
from pincompute.engine.nodes import machine

if os.geteuid() == 0:
    try:
        debian.bring(*machine.PROGRAMS, "docker-registry", "nginx", "buildah", "mmdebstrap", "busybox")
    except Refused as refused:
        # The run goes on without them, and its end says what could not be shown.
        print(refused.text(), file=sys.stderr)
