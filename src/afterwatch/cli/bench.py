"""`afterwatch bench`: speed and quality, measured by whoever doubts the figures. Loads nothing until it is used."""

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from afterwatch.cli.options import Json
from afterwatch.cli.output import print_json, table
from afterwatch.cli.view import memory_settings, meter
from afterwatch.errors import UserError

if TYPE_CHECKING:
    from afterwatch.memory.embedders import Loading

app = typer.Typer(help="Measure speed and quality.", no_args_is_help=True, rich_markup_mode=None)

MOST_BYTES = 64_000_000
START = [sys.executable, "-m", __package__ or ""]
"""The command that starts this command line anew."""

NoVectors = Annotated[bool, typer.Option("--no-vectors", help="Measure keywords alone, on purpose.")]
Compare = Annotated[
    Path | None, typer.Option("--compare", metavar="REPORT", help="Also show the difference to this --json report.")
]


@app.command(epilog="Example: afterwatch bench retrieval locomo10.json --conversations 6-10")
def retrieval(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The file of LoCoMo, locomo10.json.")],
    timeline: Annotated[str, typer.Option(metavar="now|anchored", help="Dates: the run's, or with real gaps.")] = "now",
    conversations: Annotated[str, typer.Option(metavar="N-M", help="Such as 6-10 or 1,3,5; default all.")] = "",
    no_vectors: NoVectors = False,
    compare: Compare = None,
    as_json: Json = False,
) -> None:
    """Does recall find the evidence? Strict: all evidence of a question within the first k."""
    from afterwatch.bench import retrieval as bench
    from afterwatch.security.reading import safe_read

    text = safe_read(file, max_bytes=MOST_BYTES)
    with meter("conversations") as progress:
        found = bench.run(
            text,
            _embedder(no_vectors),
            timeline=timeline,
            conversations=numbers(conversations),
            progress=progress,
        )
    _report(found, compare, as_json)


@app.command(epilog="Example: afterwatch bench precision precisionmembench")
def precision(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="The folder of PrecisionMemBench.")],
    no_vectors: NoVectors = False,
    compare: Compare = None,
    as_json: Json = False,
) -> None:
    """Does recall return what is relevant and nothing else?"""
    from afterwatch.bench import precision as bench

    with meter("cases") as progress:
        found = bench.run(folder, _embedder(no_vectors), progress)
    _report(found, compare, as_json)


@app.command(epilog="Example: afterwatch bench scale --items 10000")
def scale(
    items: Annotated[int, typer.Option(min=1, max=10_000_000, help="How many items to fill in.")] = 10_000,
    compare: Compare = None,
    as_json: Json = False,
) -> None:
    """How fast is memory with many items? Fills a store in a temporary folder."""
    from afterwatch.bench import scale as bench

    with meter("items") as progress:
        found = bench.run(items, START, progress=progress)
    _report(found, compare, as_json)


@app.command(epilog="Example: afterwatch bench sameness")
def sameness(no_vectors: NoVectors = False, compare: Compare = None, as_json: Json = False) -> None:
    """Does it merge what says the same, and nothing else?"""
    from afterwatch.bench import sameness as bench
    from afterwatch.bench.report import conditions, digest, whole

    loading = _embedder(no_vectors)
    model = whole(loading) if loading is not None else None
    corpus = digest(*(f"{pair.kind}\t{pair.a}\t{pair.b}\n" for pair in bench.pairs()))
    head = conditions("sameness", corpus=corpus, embedder=model.id if model is not None else None)
    _report({**bench.run(model), **head}, compare, as_json)


def numbers(text: str) -> tuple[int, ...]:
    """Read `6-10` or `1,3,5` or both mixed; empty gives none.

    Raises:
        UserError: it is neither.
    """
    found: dict[int, None] = {}
    for part in filter(None, text.replace(" ", "").split(",")):
        low, dash, high = part.partition("-")
        if not (low.isdecimal() and (high.isdecimal() or not dash)) or len(low) > 6 or len(high) > 6:
            raise UserError(f"{text!r} is no list of conversations", remedy="write 6-10 or 1,3,5")
        found |= dict.fromkeys(range(int(low), int(high or low) + 1))
    return tuple(found)


def _embedder(no_vectors: bool) -> "Loading | None":
    from afterwatch.memory.embedders import Loading, load
    from afterwatch.settings.paths import cache_dir

    settings = memory_settings()
    if no_vectors or settings.embedder == "none":
        return None
    return Loading(lambda: load(settings.embedder, cache_dir(), settings))


def _report(found: dict[str, Any], compare: Path | None, as_json: bool) -> None:
    difference = _difference(found, compare) if compare is not None else {}
    if as_json:
        print_json({**found, "difference": difference} if compare is not None else found)
        return
    columns = ["figure", "value", "difference"] if compare is not None else ["figure", "value"]
    rows = [
        [name, value, f"{difference[name]:+g}" if name in difference else ""][: len(columns)]
        for name, value in _flat(found)
    ]
    table(columns, rows)


def _difference(found: Mapping[str, Any], compare: Path) -> dict[str, float]:
    from afterwatch.bench.report import compare as difference_of
    from afterwatch.bench.report import parse
    from afterwatch.security.reading import safe_read

    return difference_of(found, parse(safe_read(compare, max_bytes=MOST_BYTES)))


def _flat(found: Mapping[str, Any]) -> list[tuple[str, object]]:
    """Figures of a report as rows; what lies deeper than two levels is in the document alone."""
    rows: list[tuple[str, object]] = []
    for name, value in found.items():
        if isinstance(value, dict):
            rows += [(f"{name} {key}", part) for key, part in value.items() if not isinstance(part, dict)]
        elif isinstance(value, list):
            rows.append((name, len(value)))
        else:
            rows.append((name, value))
    return [(name, _short(value)) for name, value in rows]


def _short(value: object) -> object:
    if isinstance(value, list):
        return ",".join(map(str, value)) or "all"
    if isinstance(value, float):
        return f"{value:.4g}"
    return f"{value[:12]}…" if isinstance(value, str) and len(value) == 64 else value
