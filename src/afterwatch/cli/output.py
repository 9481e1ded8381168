"""What commands print. Remembered text is hostile: it is made harmless here, at the last step."""

import json
import sys
import unicodedata
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Any

from afterwatch.errors import AfterwatchError

# Terminals obey C0 and C1 controls; bidirectional controls make a line read as another one.
_CONTROLS = [*range(0x20), *range(0x7F, 0xA0), 0x061C, 0x200E, 0x200F, *range(0x2028, 0x202F)]
_CONTROLS += [*range(0x2066, 0x206A), 0xFEFF, *range(0xE0000, 0xE0080)]
_KEPT = {ord("\n"), ord("\t")}


def _escape(code: int) -> str:
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


_HARMLESS = {code: _escape(code) for code in _CONTROLS if code not in _KEPT}
_HARMLESS_LINE = {**_HARMLESS, **dict.fromkeys(_KEPT, " ")}
_JSON_SAFE = {code: f"\\u{code:04x}" for code in _CONTROLS if 0x7F <= code < 0x10000}  # below 0x20 JSON escapes itself


def clean(text: str, *, one_line: bool = False) -> str:
    """Return `text` with control characters, ANSI escapes and direction overrides made visible and inert.

    Line breaks and tabs stay, unless `one_line` asks for blanks instead.
    """
    harmless = text.translate(_HARMLESS_LINE if one_line else _HARMLESS)
    return harmless.encode("utf-8", "backslashreplace").decode("utf-8")  # lone surrogates


def say(text: str = "", *, error: bool = False) -> None:
    """Print one piece of text, made harmless, to stdout or stderr. That stderr cannot be written is no failure."""
    if not error:
        print(clean(text))  # noqa: T201
        return
    with suppress(OSError):
        print(clean(text), file=sys.stderr)  # noqa: T201


def print_json(value: Any) -> None:
    """Print a JSON document: indented, keys in the order given, text as it is where it can be shown."""
    text = json.dumps(value, indent=2, ensure_ascii=False, default=str).translate(_JSON_SAFE)
    try:
        text.encode(sys.stdout.encoding or "utf-8")
    except UnicodeEncodeError:  # LANG=C, or a lone surrogate: escapes are the same document
        text = json.dumps(value, indent=2, ensure_ascii=True, default=str)
    print(text)  # noqa: T201


def fail(error: AfterwatchError, *, as_json: bool) -> None:
    """Print an error: as a document on stdout for `--json`, else as two lines on stderr.

    It may quote what was typed, which may be a secret in the wrong place.
    """
    from afterwatch.security.redaction import redact

    message, remedy = redact(str(error)).text, redact(error.remedy).text
    if as_json:
        print_json({"error": {"code": error.code, "message": message, "remedy": remedy}})
        return
    say(f"error: {message}", error=True)
    if remedy:
        say(f"  {remedy}", error=True)


def table(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Print rows under column names: drawn on a terminal, plainly aligned elsewhere, never cut there."""
    lines = [[clean(str(cell), one_line=True) for cell in row] for row in rows]
    if sys.stdout.isatty():
        _draw(columns, lines)
        return
    widths = [max(map(_width, column)) for column in zip(columns, *lines, strict=True)]
    for line in [list(columns), *lines]:
        cells = [cell + " " * (width - _width(cell)) for cell, width in zip(line, widths, strict=True)]
        print("  ".join(cells).rstrip())  # noqa: T201


def _draw(columns: Sequence[str], lines: list[list[str]]) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    drawn = Table(*columns)
    for line in lines:
        drawn.add_row(*(Text(cell) for cell in line))  # Text: brackets in a cell are no markup
    Console().print(drawn)


def _width(text: str) -> int:
    wide = sum(unicodedata.east_asian_width(letter) in "WF" for letter in text)
    marks = sum(unicodedata.combining(letter) != 0 for letter in text)
    return len(text) + wide - marks
