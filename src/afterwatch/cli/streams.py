"""Standard streams that are closed, full or no longer read. Standard library only: every command begins here."""

import io
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

UNREAD = 128 + 13
"""The status of a command whose reader is gone: as the signal SIGPIPE would have left it."""
UNWRITTEN = 4
"""The status of one whose output found no room: that of `Unavailable`."""


class Output:
    """An output that remembers how it failed; typer and others may have swallowed the error. None: it was closed."""

    def __init__(self, stream: Any) -> None:
        self.stream = stream or io.StringIO()
        self.failure: OSError | None = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)

    def write(self, text: str) -> int:
        return int(self._noting(self.stream.write, text))

    def flush(self) -> None:
        self._noting(self.stream.flush)

    def _noting(self, act: Any, *given: str) -> Any:
        try:
            return act(*given)
        except OSError as error:
            self.failure = self.failure or error
            raise


@contextmanager
def watched() -> Iterator[Output]:
    """Inside, no stream is missing, none fails for a character it cannot show, and stdout is the one given."""
    before = (sys.stdin, sys.stdout, sys.stderr)
    out, err = Output(sys.stdout), Output(sys.stderr)
    sys.stdin, sys.stdout, sys.stderr = sys.stdin or io.TextIOWrapper(io.BytesIO()), out, err
    for stream in (out, err):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="backslashreplace")
    try:
        yield out
    finally:
        sys.stdin, sys.stdout, sys.stderr = before
        if err.failure is not None:  # nothing is left to say it on
            _hush(err)


def give_up(out: Output) -> int:
    """Leave when stdout has failed: without a word if its reader is gone, else with a line on stderr. The status."""
    _hush(out)
    if isinstance(out.failure, BrokenPipeError):
        return UNREAD
    why = out.failure.strerror if out.failure else ""
    with suppress(OSError):
        print(f"error: the output cannot be written: {why}; what was asked may be done", file=sys.stderr)  # noqa: T201
    return UNWRITTEN


def leave(status: int, *, interrupted: bool) -> None:
    """The last act of a process: take no further Ctrl-C, and end here if a model may still load in a thread.

    The interpreter would end that thread inside foreign code, which takes it for a fault and aborts. After an
    interrupt `is_alive` cannot be asked: Python 3.11 takes a thread for ended whose `join` was interrupted.
    """
    with suppress(ValueError):  # another thread than the first one
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading = sys.modules.get("threading")
    loading = threading is not None and any(one.daemon for one in threading.enumerate())
    if not (interrupted or loading):
        return
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError, AttributeError):
            stream.flush()
    os._exit(status)


def _hush(out: Output) -> None:
    """What is still buffered goes where nobody reads it, also when Python flushes at exit."""
    with suppress(OSError, ValueError):
        _reader, writer = os.pipe()
        os.dup2(writer, out.fileno())
