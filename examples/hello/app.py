"""Says hello over HTTP, and ends when it is told to."""

import os
import signal
import socket
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

PORT = int(os.environ.get("PORT", "8080"))


class Hello(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        answer = "ok\n" if self.path == "/healthz" else f"hello from {socket.gethostname()}\n"
        self.send_response(200)
        self.send_header("Content-Type", "text/plain; charset=utf-8")
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer.encode())


def main() -> None:
    server = ThreadingHTTPServer(("", PORT), Hello)
    # Requests that are under way are answered before the program ends.
    server.daemon_threads = False
    # shutdown() waits for serve_forever(), so it cannot be called from where that was interrupted.
    signal.signal(signal.SIGTERM, lambda *_: threading.Thread(target=server.shutdown).start())
    print(f"listening on port {PORT}", flush=True)
    with server:
        server.serve_forever()
    print("ended", flush=True)


if __name__ == "__main__":
    main()
