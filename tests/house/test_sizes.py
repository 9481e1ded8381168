"""Law: code stays small. Present exceptions stand in sizes.json with their value, and may only shrink."""

import ast
import io
import json
import re
import tokenize
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[2]
TREES = ("src/afterwatch", "tests")
LIMITS = {"file": 400, "function": 40, "nesting": 3, "parameters": 8, "class": 300, "broad except": 0}

Sizes = dict[str, dict[str, int]]  # path -> measure -> value; a measure is "function Store.open", "file", …

DEEPER = (ast.If, ast.For, ast.AsyncFor, ast.While, ast.With, ast.AsyncWith, ast.Try, ast.TryStar, ast.Match)
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
DIRECTIVE = re.compile(r"#\s*(noqa(:\s*[A-Z]+[0-9]+(,\s*[A-Z]+[0-9]+)*)?|type: ignore(\[[\w, -]*\])?|pragma:.*)")


# --- measures --------------------------------------------------------------------------------------


def is_elif(parent: ast.AST, child: ast.AST) -> bool:
    """`elif` stands at its parent's column, `else:` + `if` deeper."""
    return (
        isinstance(parent, ast.If)
        and isinstance(child, ast.If)
        and parent.orelse == [child]
        and child.col_offset == parent.col_offset
    )


def depth(node: ast.AST, level: int = 0) -> int:
    """Deepest block below `node`; functions and classes inside are measured for themselves."""
    deepest = level
    for child in ast.iter_child_nodes(node):
        if isinstance(child, (*FUNCTIONS, ast.ClassDef)):
            continue
        step = isinstance(child, DEEPER) and not is_elif(node, child)
        deepest = max(deepest, depth(child, level + step))
    return deepest


def parameters(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Number of parameters, `*args` and `**kwargs` included, self and cls excluded."""
    spec = function.args
    names = [arg.arg for arg in (*spec.posonlyargs, *spec.args)]
    bound = 1 if names[:1] in (["self"], ["cls"]) else 0
    stars = (spec.vararg is not None) + (spec.kwarg is not None)
    return len(names) - bound + len(spec.kwonlyargs) + stars


def lines(node: ast.stmt) -> int:
    """Lines from `def` or `class` to the last one; decorators do not count."""
    return (node.end_lineno or node.lineno) - node.lineno + 1


def measure(node: ast.AST, prefix: str = "") -> Iterator[tuple[str, int]]:
    """Measures of all functions and classes below `node`, named in full."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, FUNCTIONS):
            name = f"{prefix}{child.name}"
            yield f"function {name}", lines(child)
            yield f"parameters {name}", parameters(child)
            yield f"nesting {name}", depth(child)
            yield from measure(child, f"{name}.")
        elif isinstance(child, ast.ClassDef):
            yield f"class {prefix}{child.name}", lines(child)
            yield f"nesting {prefix}{child.name}", depth(child)
            yield from measure(child, f"{prefix}{child.name}.")
        else:
            yield from measure(child, prefix)


# --- broad handlers --------------------------------------------------------------------------------


def is_broad(expression: ast.expr | None) -> bool:
    """Whether an `except` clause catches everything."""
    if isinstance(expression, ast.Tuple):
        return any(is_broad(part) for part in expression.elts)
    name = expression.attr if isinstance(expression, ast.Attribute) else getattr(expression, "id", None)
    return expression is None or name in ("Exception", "BaseException")


def broad(tree: ast.Module) -> list[int]:
    """Lines of the broad handlers; `suppress(Exception)` is one."""
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.ExceptHandler) and is_broad(node.type):
            found.append(node.lineno)
        elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith("suppress"):
            found += [node.lineno for argument in node.args if is_broad(argument)]
    return found


def reasons(text: str) -> set[int]:
    """Lines that hold a comment in words; directives to tools are no reason."""
    found = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT and re.search(r"[^\W\d_]{2}", DIRECTIVE.sub("", token.string)):
            found.add(token.start[0])
    return found


# --- the ratchet -----------------------------------------------------------------------------------


class Found(NamedTuple):
    """Measures beyond their limit, and handlers without a reason."""

    beyond: Sizes
    silent: list[str]


def survey(root: Path, trees: tuple[str, ...] = TREES) -> Found:
    """Measure every Python file below the trees."""
    beyond: Sizes = {}
    silent = []
    for path in sorted(path for tree in trees for path in (root / tree).rglob("*.py")):
        name, text = path.relative_to(root).as_posix(), path.read_text("utf-8")
        tree = ast.parse(text)
        handlers, said = broad(tree), reasons(text)
        silent += [f"{name}:{line}" for line in handlers if not {line, line - 1} & said]
        values = {"file": len(text.splitlines()), "broad except": len(handlers), "nesting": depth(tree)}
        for key, value in measure(tree):
            values[key] = max(value, values.get(key, 0))  # property pairs and overloads share a name
        over = {key: value for key, value in values.items() if value > limit(key)}
        if over:
            beyond[name] = over
    return Found(beyond, silent)


def limit(key: str) -> int:
    return LIMITS[key if key in LIMITS else key.split(" ")[0]]


def judge(beyond: Sizes, recorded: Mapping[str, Mapping[str, int]]) -> list[str]:
    """Where the measures and the ratchet file differ, and what to do about each."""
    problems = []
    for path, key in sorted({(p, k) for sizes in (beyond, recorded) for p in sizes for k in sizes[p]}):
        value, old = beyond.get(path, {}).get(key, 0), recorded.get(path, {}).get(key, 0)
        now = f"{path}: {key} is {value}"
        if value > old and key == "broad except":
            problems.append(f"{now}: name what can fail, or give the reason and set {value} in sizes.json")
        elif value > old:
            problems.append(f"{now}, at most {max(old, limit(key))}: make it smaller")
        elif 0 < value < old:
            problems.append(f"{now}, smaller than before: lower it in sizes.json to {value}")
        elif value == 0:
            problems.append(f"{path}: {key} is within {limit(key)} now, or gone: remove it from sizes.json")
    return problems


# --- the law ---------------------------------------------------------------------------------------


def test_sizes_are_within_the_limits_or_the_ratchet() -> None:
    recorded = json.loads((ROOT / "tests/house/sizes.json").read_text("utf-8"))
    problems = judge(survey(ROOT).beyond, recorded)
    assert not problems, "\n" + "\n".join(problems)


def test_every_broad_handler_has_its_reason_beside_it() -> None:
    silent = survey(ROOT).silent
    assert not silent, "say why, on the line of the handler or above it:\n" + "\n".join(silent)


# --- the check can fail ----------------------------------------------------------------------------


def tree_of(folder: Path, text: str) -> Found:
    (folder / "src").mkdir()
    (folder / "src/bad.py").write_text(text, encoding="utf-8")
    return survey(folder, ("src",))


def body(count: int, indent: str = "    ") -> str:
    return f"{indent}pass\n" * count


def test_it_measures_lines_and_parameters(tmp_path: Path) -> None:
    text = (
        f"@wrap\ndef fits():\n{body(39)}"
        f"def long():\n{body(40)}"
        f"class Big:\n    async def wide(self, a, /, b, c, d, e, f, *args, g, **more): ...\n"
        f"    def just(self, a, b, c, d, e, f, g, h): ...\n{body(298)}"
    )
    found = tree_of(tmp_path, text)
    assert found.beyond == {"src/bad.py": {"function long": 41, "class Big": 301, "parameters Big.wide": 9}}
    (tmp_path / "src/bad.py").write_text("x = 1\n" * 401, encoding="utf-8")
    assert survey(tmp_path, ("src",)).beyond == {"src/bad.py": {"file": 401}}


NESTS = {
    "for a in b:\n  with c:\n    try:\n      pass\n    except E:\n      while d: pass": 4,
    "match a:\n  case 1:\n    if b: pass\n    elif c: pass\n    elif d:\n      for e in f: pass": 3,
    "if a:\n  pass\nelse:\n  if b: pass": 2,
    "if a:\n  def f():\n    if b: pass": 1,
}


@pytest.mark.parametrize(("text", "deepest"), NESTS.items())
def test_it_measures_nesting(text: str, deepest: int) -> None:
    assert depth(ast.parse(text)) == deepest


def test_it_reports_nesting_of_functions_and_modules(tmp_path: Path) -> None:
    deep = "if a:\n  if b:\n    if c:\n      if d: pass\n"
    inside = "".join(f"    {line}\n" for line in deep.splitlines())
    found = tree_of(tmp_path, f"{deep}class A:\n  def f(self):\n{inside}")
    assert found.beyond == {"src/bad.py": {"nesting": 4, "nesting A.f": 4}}


def test_it_counts_broad_handlers_and_wants_a_reason(tmp_path: Path) -> None:
    text = (
        "try: pass\nexcept Exception: pass\n"
        "try: pass\nexcept (OSError, BaseException):  # noqa: BLE001\n    pass\n"
        "try: pass\nexcept Exception:  # noqa: BLE001 - a broken plug-in must not stop the others\n    pass\n"
        "try: pass\n# a broken plug-in must not stop the others\nexcept: pass\n"
        "try: pass\nexcept ValueError: pass\n"
        "with contextlib.suppress(Exception): pass\n"
    )
    found = tree_of(tmp_path, text)
    assert found.beyond == {"src/bad.py": {"broad except": 5}}
    assert found.silent == ["src/bad.py:2", "src/bad.py:4", "src/bad.py:14"]


RATCHET = [
    (50, 50, ""),
    (51, 50, "a.py: function f is 51, at most 50: make it smaller"),
    (41, 0, "a.py: function f is 41, at most 40: make it smaller"),
    (45, 50, "a.py: function f is 45, smaller than before: lower it in sizes.json to 45"),
    (0, 50, "a.py: function f is within 40 now, or gone: remove it from sizes.json"),
]


@pytest.mark.parametrize(("value", "old", "problem"), RATCHET)
def test_an_exception_may_only_shrink(value: int, old: int, problem: str) -> None:
    beyond = {"a.py": {"function f": value}} if value else {}
    recorded = {"a.py": {"function f": old}} if old else {}
    assert judge(beyond, recorded) == ([problem] if problem else [])
