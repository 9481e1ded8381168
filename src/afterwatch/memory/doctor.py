"""What memory says of itself: every space on disk, and the embedder. Looks only; creates and repairs nothing."""

import ipaddress
import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from importlib.util import find_spec
from pathlib import Path
from typing import Literal, NamedTuple
from urllib.parse import urlsplit

from afterwatch.errors import AfterwatchError, Unavailable
from afterwatch.memory import index, schema
from afterwatch.memory.embedders import EMBEDDERS
from afterwatch.memory.embedders.record import model_of
from afterwatch.memory.files import DATABASE, mount_table, plain_errors, refuse_network
from afterwatch.memory.settings import MemorySettings
from afterwatch.net.addresses import LOCAL_NAMES, literal
from afterwatch.settings.config import Config
from afterwatch.settings.paths import home, spaces_dir

LOOPBACK = (ipaddress.ip_address("127.0.0.1"), ipaddress.ip_address("::1"))

Status = Literal["ok", "warn", "fail"]

PARTS: dict[str, tuple[str, ...]] = {"minilm": ("onnxruntime", "tokenizers"), "gguf": ("xllamacpp",)}
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
    found = [_embedder(settings)]
    databases = sorted([*spaces_dir().glob(f"*/{DATABASE}"), *spaces_dir().glob(f"*/*/{DATABASE}")])
    if not databases:
        found.append(Row("memory", "ok", "nothing remembered yet"))
    for path in databases:
        found += _space(path, settings)
    return found


def _embedder(settings: MemorySettings) -> Row:
    row, name = "memory embedder", settings.embedder
    if name == "endpoint":
        return _endpoint(row, settings)
    if name == "none":
        return Row(row, "ok", "none: search is by keywords")
    if name not in EMBEDDERS:
        known = ", ".join(("none", *EMBEDDERS))
        return Row(row, "fail", f"no embedder {name!r}", f"set memory.embedder to one of: {known}")
    try:
        if name == "gguf":
            return Row(row, "ok", _gguf(settings))
        return Row(row, "ok", _weights() if name == "bundled" else _extra(name))
    except AfterwatchError as error:
        return Row(row, "warn", str(error), error.remedy or "until then search is by keywords")


def _gguf(settings: MemorySettings) -> str:
    """Look for library and file; neither is loaded, and nothing is downloaded."""
    found = _extra("gguf")
    from afterwatch.memory.embedders.gguf import downloads

    path = Path(settings.gguf_file).expanduser() if settings.gguf_file else downloads(home() / "cache", settings).path
    if path.is_file():
        return f"{found}: {path}"
    remedy = "afterwatch memory embedder set gguf; until then search is by keywords"
    raise Unavailable(f"gguf: there is no {path}", remedy=remedy, code="no_model")


def _endpoint(row: str, settings: MemorySettings) -> Row:
    """Who gets the text. The server is not asked: to look sends nothing."""
    parts = urlsplit(settings.endpoint_url)
    if not parts.hostname or not settings.endpoint_model:
        return Row(
            row, "fail", "endpoint: address or model is not set", "afterwatch memory embedder set endpoint --help"
        )
    if settings.endpoint_key and not os.environ.get(settings.endpoint_key, "").strip():
        return Row(row, "warn", f"endpoint: {settings.endpoint_key} holds no key", f"export {settings.endpoint_key}=…")
    what = f"endpoint: every text, redacted, is sent to {parts.netloc}"
    if literal(parts.hostname) in LOOPBACK or parts.hostname in LOCAL_NAMES:
        return Row(row, "ok", f"{what}, a server on this machine")
    return Row(
        row, "warn", f"text leaves this machine; {what}", "to keep it here: afterwatch memory embedder set bundled"
    )


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
        extra = "gguf" if name == "gguf" else "onnx"
        remedy = f"pip install 'afterwatch[{extra}]'; until then search is by keywords"
        raise Unavailable(f"{name} lacks {', '.join(absent)}", remedy=remedy, code="no_embedder")
    return name


def _space(path: Path, settings: MemorySettings) -> Iterator[Row]:
    space = ":".join(path.parent.relative_to(spaces_dir()).parts)
    try:
        refuse_network(path.parent, mount_table())
        with plain_errors(), closing(_open(path)) as connection:
            yield _schema(space, connection)
            yield _integrity(space, connection)
            yield _index(space, connection)
            model = model_of(settings, home()) if settings.embedder in EMBEDDERS else None
            if model is not None:
                yield _vectors(space, connection, model)
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
