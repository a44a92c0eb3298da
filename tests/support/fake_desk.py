"""A desk with responses set by the test, for a `pin` process."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import msgspec

from pincompute.base.platform_context import Context, write_context


@contextmanager
def fake_desk(state: Path, answer: Callable[[str, str], tuple[int, object]]) -> Iterator[None]:
    """`answer` returns the status and the JSON body for a method and path."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            status, value = answer(self.command, self.path)
            body = msgspec.json.encode(value)
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_POST = do_DELETE = do_GET  # noqa: N815  (as the library names it)

        def log_message(self, format: str, *_: object) -> None: ...  # noqa: A002  (as the library names it)

    server = HTTPServer(("127.0.0.1", 0), Handler)
    serving = threading.Thread(target=server.serve_forever)
    serving.start()
    address = f"http://127.0.0.1:{server.server_port}"
    write_context(state, Context(name="main", desk=address, token="secret", kubeconfig=""))
    try:
        yield
    finally:
        server.shutdown()
        serving.join()
        server.server_close()
