"""The command line: one table of groups, one error boundary. A group loads when it is used."""

import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from afterwatch.errors import AfterwatchError, Defect, ToolRefused, Unavailable, UserError

if TYPE_CHECKING:
    from typer import Typer

    from afterwatch.cli.streams import Output

    app: Typer

EXIT_CODES: tuple[tuple[type[AfterwatchError], int], ...] = (
    (UserError, 2),
    (ToolRefused, 3),
    (Unavailable, 4),
    (Defect, 70),
)
ONE_THREAD = ("OPENBLAS_NUM_THREADS", "1")
"""Numpy computes in one thread: the products of the bundled model are small. On a busy machine of 2 cores a search took
10 ms with one thread and 37 with two, which wait for each other."""
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

    0 done, 1 the answer is no, 2 wrong input, 3 refused, 4 unavailable now, 70 a defect of ours, 130 interrupted,
    141 the reader of the output is gone.
    """
    from afterwatch.cli import interrupt, streams

    os.environ.setdefault(*ONE_THREAD)
    try:
        if argv is None:
            interrupt.lose_none()
        status = _answer(list(sys.argv[1:] if argv is None else argv))
    except KeyboardInterrupt:
        status = INTERRUPTED
    if argv is None:  # a process of our own
        streams.leave(status, interrupted=status == INTERRUPTED)
    return status


def _answer(words: list[str]) -> int:
    from afterwatch.cli import streams

    with streams.watched() as out:
        try:
            status = _version() if words == ["--version"] else _run(words, out)
            out.flush()
        except OSError:
            if out.failure is None:
                raise
        return status if out.failure is None else streams.give_up(out)


def _version() -> int:
    from afterwatch import __version__

    print(f"afterwatch {__version__}")  # noqa: T201
    return 0


def _run(words: list[str], out: "Output") -> int:
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
    except Exception as error:  # the boundary: a defect must reach a person as a report, not as a stack
        if os.environ.get("AFTERWATCH_DEBUG") or (isinstance(error, OSError) and out.failure):
            raise
        if isinstance(error, UnicodeEncodeError) and not all(map(_is_text, words)):
            return _fail(UserError("a word is no text in utf-8", remedy="write it in utf-8", code="bad_text"), words)
        return _fail(_defect(error), words)


def _is_text(word: str) -> bool:
    """Whether a word is whole: bytes that are no UTF-8 come in as halves of characters."""
    return not any("\ud800" <= letter <= "\udfff" for letter in word)


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
