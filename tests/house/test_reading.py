"""Law: a path that a user named is read by `afterwatch.security.reading.safe_read` and by nothing else."""

import ast
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import pytest

PACKAGE = Path(__file__).parents[2] / "src/afterwatch"
THE_READER = "security/reading.py"

# Calls that open a file by its path, or parse one that was opened.
OPENERS = {
    *("open", "builtins.open", "os.open", "io.open", "io.open_code", "io.FileIO", "codecs.open"),
    *("numpy.load", "numpy.fromfile", "numpy.memmap", "numpy.loadtxt", "numpy.genfromtxt"),
    *("shutil.copy", "shutil.copy2", "shutil.copyfile", "shutil.copyfileobj", "shutil.copytree"),
    *("json.load", "tomllib.load", "tomlkit.load", "pickle.load", "zipfile.ZipFile", "tarfile.open"),
    *("gzip.open", "bz2.open", "lzma.open", "mmap.mmap", "linecache.getlines", "fileinput.input"),
}
METHODS = {"read_text", "read_bytes"}

# Reads of our own paths: file -> function -> reason. Each line is a decision.
EXCEPTIONS: dict[str, dict[str, str]] = {
    "bench/sameness.py": {"_load": "pairs inside our own package"},
    "cli/demo.py": {"_data": "the script inside our own package"},
    "security/redaction_rules.py": {"load_rules": "a table inside our own package"},
    "memory/embedders/weights.py": {"check_sha256": "weights inside an installed package, to compare their sha256"},
    "memory/embedders/minilm.py": {"_words": "a word list inside our own package"},
    "memory/calibrate.py": {"pairs": "pairs inside our own package"},
    "memory/gates.py": {"fitted": "our own file at a fixed place"},
    "memory/embedders/record.py": {"read_record": "our own file at a fixed place"},
    "memory/embedders/download.py": {
        "Downloads._receive": "our own staging file",
        "Downloads._salvaged": "a file named by the pinned sha256; the copy is compared before it is used",
        "_sha256": "our own staging file, to compare it",
    },
    "memory/embedders/gguf.py": {"checked_file": "binary, sensitive paths refused; hashed, never shown"},
    "memory/embedders/bundled.py": {
        "_read": "weights inside an installed package, after that comparison",
        "_mapped": "our own cache folder, named by the weights' sha256; no pickles",
    },
    "memory/files.py": {"mount_table": "a constant path of the kernel"},
    "security/audit.py": {"AuditLog._create": "creates our own log with mode 0600; nothing is read"},
    "settings/files.py": {"_read": "settings files at fixed places; below security, so it cannot use safe_read"},
}


class Read(NamedTuple):
    """One use of an opener: where, and what."""

    function: str
    what: str
    line: int


def aliases(tree: ast.Module) -> dict[str, str]:
    """Local name -> full name, for every import of the module, wherever it stands."""
    names = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                top = alias.name.partition(".")[0]
                names[alias.asname or top] = alias.name if alias.asname else top
        elif isinstance(node, ast.ImportFrom) and not node.level:
            names.update({alias.asname or alias.name: f"{node.module}.{alias.name}" for alias in node.names})
    return names


def full_name(node: ast.AST, names: Mapping[str, str]) -> str:
    """Dotted name of an expression with imports resolved, "" if it is none."""
    if isinstance(node, ast.Name):
        return names.get(node.id, node.id)
    if isinstance(node, ast.Attribute):
        base = full_name(node.value, names)
        return f"{base}.{node.attr}" if base else ""
    return ""


def opens_by_method(node: ast.Attribute, names: Mapping[str, str]) -> bool:
    """`x.read_text`, `x.read_bytes`, and `x.open` unless x is a class of ours, such as `Store.open`."""
    if node.attr in METHODS:
        return True
    base = full_name(node.value, names)
    owner = base.rpartition(".")[2]
    ours = base in ("self", "cls") or (owner[:1].isupper() and base != "pathlib.Path")
    return node.attr == "open" and not ours


def uses(node: ast.AST, names: Mapping[str, str], function: str = "") -> Iterator[Read]:
    """All uses of openers below `node`, called or handed on, with the full name of their function."""
    for child in ast.iter_child_nodes(node):
        inside = function
        if isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            inside = f"{function}.{child.name}".lstrip(".")
        name = full_name(child, names)
        attribute = isinstance(child, ast.Attribute) and opens_by_method(child, names)
        if name in OPENERS or attribute:
            what = name if name in OPENERS else f".{child.attr}" if isinstance(child, ast.Attribute) else ""
            yield Read(inside or "<module>", what, getattr(child, "lineno", 0))
        yield from uses(child, names, inside)


def judge(package: Path, exceptions: Mapping[str, Mapping[str, str]]) -> list[str]:
    """Uses that no exception allows, and exceptions that no use needs."""
    problems, needed = [], set()
    for path in sorted(package.rglob("*.py")):
        name = path.relative_to(package).as_posix()
        tree = ast.parse(path.read_text("utf-8"))
        for read in [] if name == THE_READER else uses(tree, aliases(tree)):
            needed.add((name, read.function))
            if not exceptions.get(name, {}).get(read.function):
                problems.append(f"{name}:{read.line}: {read.what} in {read.function}: use safe_read")
    stale = {(name, function) for name in exceptions for function in exceptions[name]} - needed
    return problems + [f"{name}: {function} opens nothing now: drop its exception" for name, function in sorted(stale)]


def test_user_named_paths_are_read_by_the_guarded_reader_only() -> None:
    problems = judge(PACKAGE, EXCEPTIONS)
    hint = "(a path of our own: add file, function and reason to EXCEPTIONS in this test)"
    assert not problems, "\n".join(["", *problems, hint])


def test_the_guarded_reader_exists() -> None:
    tree = ast.parse((PACKAGE / THE_READER).read_text("utf-8"))
    assert "safe_read" in {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}


# --- the check can fail ----------------------------------------------------------------------------

BAD = [
    ("open(p)", "open"),
    ("with open(p, 'rb') as f: pass", "open"),
    ("Path(p).read_text()", ".read_text"),
    ("(a / b).read_bytes()", ".read_bytes"),
    ("p.open('rb')", ".open"),
    ("Path(p).open()", ".open"),
    ("list(map(Path.read_text, ps))", ".read_text"),
    ("list(map(open, ps))", "open"),
    ("import os\nos.open(p, 0)", "os.open"),
    ("from os import open as peek\npeek(p, 0)", "os.open"),
    ("import io as i\ni.open(p)", "io.open"),
    ("import codecs\ncodecs.open(p)", "codecs.open"),
    ("import numpy as np\nnp.load(p)", "numpy.load"),
    ("def f():\n  import numpy\n  return numpy.memmap(p)", "numpy.memmap"),
    ("from numpy import fromfile\nfromfile(p)", "numpy.fromfile"),
    ("import shutil\nshutil.copy2(p, q)", "shutil.copy2"),
    ("from shutil import copyfile\ncopyfile(p, q)", "shutil.copyfile"),
    ("import json\njson.load(f)", "json.load"),
    ("import zipfile\nzipfile.ZipFile(p)", "zipfile.ZipFile"),
    ("import tomllib\ntomllib.load(f)", "tomllib.load"),
    ("from importlib.resources import files\nfiles('x').joinpath('y').read_bytes()", ".read_bytes"),
]
GOOD = ["Store.open(p)", "self.open()", "json.loads(t)", "safe_read(p)", "p.opened", "p.write_text(t)"]


@pytest.mark.parametrize(("text", "what"), BAD)
def test_it_finds_every_way_to_open(text: str, what: str) -> None:
    tree = ast.parse(text)
    assert what in {read.what for read in uses(tree, aliases(tree))}


@pytest.mark.parametrize("text", GOOD)
def test_it_leaves_other_calls_alone(text: str) -> None:
    tree = ast.parse(text)
    assert not list(uses(tree, aliases(tree)))


def test_each_exception_is_needed_and_has_a_reason(tmp_path: Path) -> None:
    (tmp_path / "security").mkdir()
    (tmp_path / THE_READER).write_text("open(p)", encoding="utf-8")
    (tmp_path / "a.py").write_text("open(p)\nclass A:\n  def f(self):\n    open(p)\n", encoding="utf-8")
    assert judge(tmp_path, {}) == [
        "a.py:1: open in <module>: use safe_read",
        "a.py:4: open in A.f: use safe_read",
    ]
    assert judge(tmp_path, {"a.py": {"<module>": "ours", "A.f": ""}}) == ["a.py:4: open in A.f: use safe_read"]
    allowed = {"a.py": {"<module>": "ours", "A.f": "ours", "A.g": "ours"}}
    assert judge(tmp_path, allowed) == ["a.py: A.g opens nothing now: drop its exception"]
