"""The command line: one table of groups, one error boundary. A group loads when it is used."""

import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from afterwatch.errors import AfterwatchError, Defect, ToolRefused, Unavailable, UserError

if TYPE_CHECKING:
    from typer import Typer

    app: Typer

EXIT_CODES: tuple[tuple[type[AfterwatchError], int], ...] = (
    (UserError, 2),
    (ToolRefused, 3),
    (Unavailable, 4),
    (Defect, 70),
)
INTERRUPTED = 130
USAGE = 2


def __getattr__(name: str) -> Any:
    """Build the command tree on first use: `--version` needs none of it."""
    if name == "app":
        from afterwatch.cli.root import app

        return app
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit status.

    0 done, 1 the answer is no, 2 wrong input, 3 refused, 4 unavailable now, 70 a defect of ours, 130 interrupted.
    """
    words = list(sys.argv[1:] if argv is None else argv)
    if words == ["--version"]:
        from afterwatch import __version__

        print(f"afterwatch {__version__}")  # noqa: T201
        return 0
    from afterwatch.cli.output import prepare_streams

    prepare_streams()
    try:
        status = _run(words)
        sys.stdout.flush()
    except BrokenPipeError:
        status = _hush()
    except KeyboardInterrupt:
        status = INTERRUPTED
    return status


def _run(words: list[str]) -> int:
    from typer import Abort
    from typer.exceptions import TyperException

    try:
        return _dispatch(words)
    except AfterwatchError as error:
        return _fail(error, words)
    except TyperException as error:
        return _usage(error, words)
    except Abort:
        return INTERRUPTED
    except BrokenPipeError:
        raise
    except Exception as error:  # the boundary: a defect must reach a person as a report, not as a stack
        if os.environ.get("AFTERWATCH_DEBUG"):
            raise
        return _fail(_defect(error), words)


def _dispatch(words: list[str]) -> int:
    from typer.main import get_command

    from afterwatch.cli.root import app

    try:
        answer = get_command(app).main(words, prog_name="afterwatch", standalone_mode=False)
    except SystemExit as stop:
        return stop.code if isinstance(stop.code, int) else 1
    return answer if isinstance(answer, int) else 0


def _wants_json(words: list[str]) -> bool:
    options = words[: words.index("--")] if "--" in words else words
    return "--json" in options


def _fail(error: AfterwatchError, words: list[str]) -> int:
    from afterwatch.cli.output import fail

    status = next((code for kind, code in EXIT_CODES if isinstance(error, kind)), 1)
    fail(error, as_json=_wants_json(words))
    return status


def _usage(error: Any, words: list[str]) -> int:
    context = getattr(error, "ctx", None)
    if type(error).__name__ == "NoArgsIsHelpError":
        print(error.format_message(), file=sys.stderr)  # noqa: T201
        return USAGE
    where = context.command_path if context else "afterwatch"
    return _fail(UserError(error.format_message(), remedy=f"see `{where} --help`", code="usage"), words)


def _defect(error: Exception) -> Defect:
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    place = f"{os.path.basename(trace.tb_frame.f_code.co_filename)}:{trace.tb_lineno}" if trace else "unknown"
    # The text of the exception is left out: it may quote what a user remembered.
    return Defect(
        f"internal error ({type(error).__name__} at {place})",
        remedy="please report it; AFTERWATCH_DEBUG=1 shows the whole trace",
    )


def _hush() -> int:
    """The reader of our output is gone: leave without a word, also when Python flushes at exit."""
    _reader, writer = os.pipe()  # what is still buffered goes here, and nowhere
    os.dup2(writer, sys.stdout.fileno())
    return 1
