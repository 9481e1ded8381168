"""What memory says of itself: every space on disk, and the embedder. Looks only; creates and repairs nothing."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from importlib.util import find_spec
from pathlib import Path
from typing import Literal, NamedTuple

from afterwatch.errors import AfterwatchError, Unavailable
from afterwatch.memory import index, schema
from afterwatch.memory.embedders import EMBEDDERS
from afterwatch.memory.files import DATABASE, mount_table, plain_errors, refuse_network
from afterwatch.memory.settings import MemorySettings
from afterwatch.settings.config import Config
from afterwatch.settings.paths import spaces_dir

Status = Literal["ok", "warn", "fail"]

PARTS: dict[str, tuple[str, ...]] = {"minilm": ("onnxruntime", "tokenizers")}
"""Modules that an optional embedder needs."""


class Row(NamedTuple):
    """One finding: what was looked at, how it is, what was seen, and what repairs it."""

    name: str
    status: Status
    what: str
    remedy: str = ""


def checks() -> list[Row]:
    """The embedder, then each space that is there.

    Raises:
        UserError: the settings cannot be read.
    """
    settings = Config.load({"memory": MemorySettings}, complete=False).section(MemorySettings)
    found = [_embedder(settings.embedder)]
    databases = sorted([*spaces_dir().glob(f"*/{DATABASE}"), *spaces_dir().glob(f"*/*/{DATABASE}")])
    if not databases:
        found.append(Row("memory", "ok", "nothing remembered yet"))
    for path in databases:
        found += _space(path, settings.embedder)
    return found


def _embedder(name: str) -> Row:
    row = "memory embedder"
    if name == "none":
        return Row(row, "ok", "none: search is by keywords")
    if name not in EMBEDDERS:
        known = ", ".join(("none", *EMBEDDERS))
        return Row(row, "fail", f"no embedder {name!r}", f"set memory.embedder to one of: {known}")
    try:
        return Row(row, "ok", _weights() if name == "bundled" else _extra(name))
    except AfterwatchError as error:
        return Row(row, "warn", str(error), error.remedy or "until then search is by keywords")


def _weights() -> str:
    """Compare the bundled weights with what we know: 30 ms."""
    from afterwatch.memory.embedders.bundled import SHA256, weight_files
    from afterwatch.memory.embedders.weights import check_sha256

    for name, path in weight_files().items():
        check_sha256(path, SHA256[name])
    return "bundled, its weights are those we know"


def _extra(name: str) -> str:
    """Look for the parts of an optional embedder; finding them loads none."""
    absent = [part for part in PARTS.get(name, ()) if find_spec(part) is None]
    if absent:
        remedy = "pip install 'afterwatch[onnx]'; until then search is by keywords"
        raise Unavailable(f"{name} lacks {', '.join(absent)}", remedy=remedy, code="no_embedder")
    return name


def _space(path: Path, embedder: str) -> Iterator[Row]:
    space = ":".join(path.parent.relative_to(spaces_dir()).parts)
    try:
        refuse_network(path.parent, mount_table())
        with plain_errors(), closing(_open(path)) as connection:
            yield _schema(space, connection)
            yield _integrity(space, connection)
            yield _index(space, connection)
            if embedder in EMBEDDERS:
                yield _vectors(space, connection, _model(embedder))
    except AfterwatchError as error:
        yield Row(f"memory {space}", "fail", str(error), error.remedy)


def _open(path: Path) -> sqlite3.Connection:
    # immutable: a store that nobody has open has no -wal file, and a plain read would create one
    mode = "mode=ro" if path.with_name(f"{path.name}-wal").exists() else "immutable=1"
    return sqlite3.connect(f"{path.absolute().as_uri()}?{mode}", uri=True, timeout=5)


def _schema(space: str, connection: sqlite3.Connection) -> Row:
    meta = schema.read_meta(connection)
    if meta[0] == 0:
        raise Unavailable("the file is no memory store", remedy="run `afterwatch memory restore` with a backup")
    schema.check_meta(meta, write=True)
    items = connection.execute("SELECT count(*) FROM items").fetchone()[0]
    return Row(f"memory {space}", "ok", f"{items} items, schema {meta[0]}")


def _integrity(space: str, connection: sqlite3.Connection) -> Row:
    found = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
    if found == "ok":
        return Row(f"memory {space} integrity", "ok", "whole")
    remedy = "keep a copy of the folder, then `afterwatch memory restore` with a backup"
    return Row(f"memory {space} integrity", "fail", f"damaged: {found}", remedy)


def _index(space: str, connection: sqlite3.Connection) -> Row:
    name = f"memory {space} index"
    if index.ready(connection, index.signature()):
        return Row(name, "ok", "complete")
    what = "to be rebuilt: some items cannot be found by keyword"
    return Row(name, "warn", what, f"`afterwatch memory reindex --space {space}`")


def _model(embedder: str) -> str:
    """The name that the vectors of an embedder carry; its weights are not loaded."""
    from afterwatch.memory.embedders.bundled import Bundled
    from afterwatch.memory.embedders.minilm import MiniLM

    return {"bundled": Bundled.id, "minilm": MiniLM.id}[embedder]


def _vectors(space: str, connection: sqlite3.Connection, model: str) -> Row:
    name = f"memory {space} vectors"
    live, held = connection.execute(
        "SELECT count(*), count(v.item) FROM items i LEFT JOIN vectors v ON v.item = i.row AND v.model = ? "
        "WHERE i.live = 1",
        (model,),
    ).fetchone()
    if held == live:
        return Row(name, "ok", f"complete ({model if live else 'none needed'})")
    others = [row[0] for row in connection.execute("SELECT DISTINCT model FROM vectors WHERE model != ?", (model,))]
    what = f"{live - held} of {live} items have none yet of {model} and are found by keyword"
    what += f"; those of {', '.join(sorted(others))} are not used" if others else ""
    return Row(name, "warn", what, f"the next `afterwatch memory search --space {space} …` computes them")
