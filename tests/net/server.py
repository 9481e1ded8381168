"""A real HTTP server on loopback whose answers a test scripts, one a request; the last one is repeated."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

Answer = Callable[["Call"], None]


@dataclass
class Call:
    """One request as it arrived, and the ways to answer it."""

    handler: BaseHTTPRequestHandler
    method: str
    path: str
    headers: dict[str, str]
    body: bytes

    def reply(self, status: int, body: bytes = b"", **headers: str) -> None:
        """Answer in full; `headers` with underscores for hyphens."""
        self.begin(status, len(body), **headers)
        self.handler.wfile.write(body)

    def begin(self, status: int, length: int, **headers: str) -> None:
        """Answer the head alone; what is written then may be shorter than said."""
        self.handler.send_response(status)
        for name, value in headers.items():
            self.handler.send_header(name.replace("_", "-"), value)
        self.handler.send_header("Content-Length", str(length))
        self.handler.end_headers()


@dataclass
class Server:
    """Where it listens, and what was asked of it so far."""

    port: int
    calls: list[Call] = field(default_factory=list)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"


@contextmanager
def serving(*answers: Answer) -> Iterator[Server]:
    """Serve until the block ends."""
    server: Server

    class Handler(BaseHTTPRequestHandler):
        def answer(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            headers = {name.lower(): value for name, value in self.headers.items()}
            call = Call(self, self.command, self.path, headers, self.rfile.read(length))
            server.calls.append(call)
            answers[min(len(server.calls), len(answers)) - 1](call)

        do_GET = do_POST = answer  # noqa: N815

        def log_message(self, format: str, *args: object) -> None:
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as http:
        http.daemon_threads = True
        server = Server(http.server_port)
        thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        thread.start()
        try:
            yield server
        finally:
            http.shutdown()
            thread.join()
