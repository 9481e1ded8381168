"""Law: who imports whom is written in docs/house.md, and stays inside the bound of the design."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
FREE = {"settings", "security"}
FRONT = "anything above"

# The upper bound of the design, in its order. `settings` and `security` are free for all other rooms.
ALLOWED: dict[str, set[str] | str] = {
    "settings": set(),
    "security": {"settings"},
    "net": set(),
    "models": {"net"},
    "memory": {"net"},
    "sessions": set(),
    "exec": set(),
    "cluster": {"exec"},
    "skills": {"memory", "net"},
    "hooks": {"memory"},
    "context": {"skills", "hooks", "memory", "sessions", "models"},
    "daemon": {"context", "memory"},
    "distil": {"memory", "sessions", "models"},
    "diagnose": {"cluster", "exec", "memory"},
    "tools": {"diagnose", "cluster", "exec", "skills", "memory"},
    "agent": {"tools", "context", "models", "sessions", "hooks", "memory", "exec"},
    "server": "agent, distil, daemon and below",
    "web": FRONT,
    "api": FRONT,
    "channels": FRONT,
    "integrations": FRONT,
    "bench": FRONT,
    "cli": FRONT,
}
# Modules beside the rooms: `__init__` names the public classes, `errors` is free for all.
ROOT_MODULES: dict[str, set[str]] = {"__init__": {"memory"}, "__main__": {"cli"}, "errors": set()}
ROW = re.compile(r"^\|\s*`(?P<room>\w+)`\s*\|[^|]*\|\s*(?P<imports>[^|]*?)\s*\|\s*$")
DOTTED = re.compile(r"afterwatch\.(\w+)(?:[.:][\w.:]*)?")


class Edge(NamedTuple):
    """One import: the room that imports, the room imported, and where."""

    room: str
    target: str
    place: str


# --- what the tables say ---------------------------------------------------------------------------


def below(rooms: set[str]) -> set[str]:
    """The rooms and all that they may import."""
    found = set(rooms)
    for room in rooms:
        allowed = ALLOWED[room]
        assert isinstance(allowed, set)
        found |= below(allowed)
    return found


def bound(room: str) -> set[str]:
    """All that a room may import."""
    allowed = ALLOWED[room]
    if room in FREE:
        return set(allowed)
    if room == "server":
        return below({"agent", "distil", "daemon"}) | FREE
    if allowed == FRONT:
        above = {name for name, rule in ALLOWED.items() if rule != FRONT}
        return above | ({"bench"} if room == "cli" else set())
    return set(allowed) | FREE


def listed(page: Path) -> dict[str, tuple[int, set[str]]]:
    """The rows of docs/house.md: room -> (line number, imports)."""
    rows = {}
    for number, line in enumerate(page.read_text("utf-8").splitlines(), 1):
        if row := ROW.match(line):
            words = {word.strip(" `") for word in row["imports"].split(",")}
            rows[row["room"]] = (number, words - {"—", "-", ""})
    return rows


# --- what the code says ----------------------------------------------------------------------------


def rooms_of(package: Path) -> set[str]:
    return {path.parent.name for path in package.glob("*/__init__.py")}


def parts_of(path: Path, package: Path) -> list[str]:
    parts = ["afterwatch", *path.relative_to(package).with_suffix("").parts]
    return parts[:-1] if parts[-1] == "__init__" else parts


def named(tree: ast.Module, path: Path, package: Path) -> Iterator[tuple[str, int]]:
    """Every dotted name of ours that a module imports, also lazily by a string such as "afterwatch.x:y"."""
    parts = parts_of(path, package)
    here = parts if path.name == "__init__.py" else parts[:-1]
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((alias.name, node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = here[: len(here) - node.level + 1] if node.level else []
            module = ".".join([*base, *([node.module] if node.module else [])])
            yield from ((f"{module}.{alias.name}", node.lineno) for alias in node.names)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and DOTTED.fullmatch(node.value):
            yield node.value, node.lineno


def public(package: Path) -> dict[str, str]:
    """The names that the package root hands out, and their rooms: `from afterwatch import View`."""
    path = package / "__init__.py"
    names = {}
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.ImportFrom) and (match := DOTTED.match(node.module or "")):
            names.update({alias.asname or alias.name: match[1] for alias in node.names})
    return names


def edges(package: Path) -> list[Edge]:
    """All imports between rooms, and between the root's own modules and rooms, in order of place."""
    known, handed = rooms_of(package) | set(ALLOWED), public(package)
    found = []
    for path in sorted(package.rglob("*.py")):
        below_root = path.relative_to(package).parts
        room = below_root[0] if len(below_root) > 1 else path.stem
        for name, line in named(ast.parse(path.read_text("utf-8")), path, package):
            match = DOTTED.match(name)
            target = handed.get(match[1], match[1]) if match else ""
            if target in known and target != room:
                found.append(Edge(room, target, f"src/afterwatch/{path.relative_to(package)}:{line}"))
    return found


# --- the comparison --------------------------------------------------------------------------------


def show(rooms: set[str]) -> str:
    return ", ".join(sorted(rooms)) or "—"


def compare(package: Path, page: Path) -> list[str]:
    """Where the table of docs/house.md and the code differ."""
    rooms, rows, found = rooms_of(package), listed(page), edges(package)
    problems = []
    for room in sorted(rooms | set(rows)):
        real = {edge.target for edge in found if edge.room == room} - (set() if room in FREE else FREE)
        number, said = rows.get(room, (0, set()))
        where = f"docs/house.md:{number}"
        if room not in rows:
            problems.append(f"docs/house.md: add a row | `{room}` | … | {show(real)} |")
        elif room not in rooms:
            problems.append(f"{where}: remove the row of `{room}`: no src/afterwatch/{room}/__init__.py")
        elif real != said:
            places = [edge.place for edge in found if edge.room == room and edge.target in real - said]
            seen = f" (see {', '.join(places)})" if places else ""
            problems.append(f"{where}: `{room}` imports {show(real)}, not {show(said)}{seen}")
    return problems


def outside(package: Path) -> list[str]:
    """Rooms and imports that the design does not allow."""
    folders = {path.relative_to(package).parts[0] for path in package.rglob("*.py") if path.parent != package}
    modules = {path.stem for path in package.glob("*.py")}
    problems = [f"{room}: a folder of code without __init__.py" for room in folders - rooms_of(package)]
    problems += [f"{room}: no room of the design" for room in rooms_of(package) - set(ALLOWED)]
    problems += [f"{name}.py: only rooms, {show(set(ROOT_MODULES))}" for name in modules - set(ROOT_MODULES)]
    for edge in edges(package):
        may = bound(edge.room) if edge.room in ALLOWED else ROOT_MODULES.get(edge.room, set())
        if edge.target not in may:
            problems.append(f"{edge.place}: {edge.room} may not import {edge.target}; it may: {show(may)}")
    return sorted(problems)


def cycles(package: Path) -> list[str]:
    """Rooms that import each other, however far around; the root's own modules hold no room."""
    rooms = rooms_of(package)
    graph = {room: {edge.target for edge in edges(package) if edge.room == room} & rooms for room in rooms}
    found = set()

    def walk(path: list[str]) -> None:
        for target in sorted(graph[path[-1]]):
            if target == path[0]:
                found.add(" → ".join([*path, target]))
            elif target not in path and target > path[0]:
                walk([*path, target])

    for room in sorted(rooms):
        walk([room])
    return sorted(found)


# --- the law ---------------------------------------------------------------------------------------


def test_the_table_of_the_house_equals_the_code() -> None:
    problems = compare(ROOT / "src/afterwatch", ROOT / "docs/house.md")
    assert not problems, "\n" + "\n".join(problems)


def test_no_import_leaves_the_bound_of_the_design() -> None:
    problems = outside(ROOT / "src/afterwatch")
    assert not problems, "\n" + "\n".join(problems)


def test_no_rooms_import_each_other() -> None:
    assert not cycles(ROOT / "src/afterwatch")


def test_the_bound_itself_has_no_cycle_and_knows_all_its_rooms() -> None:
    assert {target for room in ALLOWED for target in bound(room)} <= set(ALLOWED)
    assert not [(a, b) for a in ALLOWED for b in bound(a) if a in bound(b)]
    assert bound("server") >= {"agent", "exec", "net", "settings"}
    assert not bound("server") & {"cli", "web"}


# --- the check can fail ----------------------------------------------------------------------------


def house_of(folder: Path, files: dict[str, str], table: str) -> tuple[Path, Path]:
    """A small source tree and its page."""
    package, page = folder / "afterwatch", folder / "house.md"
    for name, text in {"__init__.py": "", **files}.items():
        (package / name).parent.mkdir(parents=True, exist_ok=True)
        (package / name).write_text(text, encoding="utf-8")
    page.write_text(f"| room | what lives there | imports |\n|---|---|---|\n{table}", encoding="utf-8")
    return package, page


def test_it_finds_an_import_in_every_form(tmp_path: Path) -> None:
    forms = {
        "a.py": "import afterwatch.net.client",
        "b.py": "from afterwatch import models",
        "c.py": "def f():\n    from ..exec import parse",
        "d.py": "if TYPE_CHECKING:\n    from afterwatch.cluster import Reader",
        "e.py": "from afterwatch import View",
        "f.py": "from .. import skills",
        "g.py": "LAZY = {'run': 'afterwatch.agent.loop:run'}",
        "h.py": "def f(name):\n    return load(f'afterwatch.hooks.{name}')",
        "i.py": "from .net import here\n'afterwatch.context is a room'",
    }
    root = {"__init__.py": "def f():\n    from afterwatch.memory import View", "web/__init__.py": ""}
    package, _ = house_of(tmp_path, {**root, **{f"web/{name}": text for name, text in forms.items()}}, "")
    found = [(edge.target, Path(edge.place).name) for edge in edges(package) if edge.room == "web"]
    assert found == [
        ("net", "a.py:1"),
        ("models", "b.py:1"),
        ("exec", "c.py:2"),
        ("cluster", "d.py:2"),
        ("memory", "e.py:1"),
        ("skills", "f.py:1"),
        ("agent", "g.py:1"),
        ("hooks", "h.py:2"),
    ]


def test_it_names_the_line_to_change(tmp_path: Path) -> None:
    files = {
        "memory/__init__.py": "from afterwatch import settings\nfrom afterwatch.net import get",
        "net/__init__.py": "",
        "settings/__init__.py": "import afterwatch.security",
        "security/__init__.py": "import afterwatch.errors",
    }
    rows = {"memory": "exec", "settings": "—", "security": "settings", "bench": "—"}
    table = "".join(f"| `{room}` | x | {imports} |\n" for room, imports in rows.items())
    assert compare(*house_of(tmp_path, files, table)) == [
        "docs/house.md:6: remove the row of `bench`: no src/afterwatch/bench/__init__.py",
        "docs/house.md:3: `memory` imports net, not exec (see src/afterwatch/memory/__init__.py:2)",
        "docs/house.md: add a row | `net` | … | — |",
        "docs/house.md:5: `security` imports —, not settings",
        "docs/house.md:4: `settings` imports security, not — (see src/afterwatch/settings/__init__.py:1)",
    ]


def test_it_finds_what_the_design_does_not_allow(tmp_path: Path) -> None:
    files = {
        "helpers.py": "",
        "errors.py": "import afterwatch.settings",
        "attic/__init__.py": "",
        "loose/x.py": "",
        "net/__init__.py": "import afterwatch.memory",
        "memory/__init__.py": "import afterwatch.net, afterwatch.security",
        "security/__init__.py": "import afterwatch.net",
    }
    package, _ = house_of(tmp_path, files, "")
    assert outside(package) == [
        "attic: no room of the design",
        "helpers.py: only rooms, __init__, __main__, errors",
        "loose: a folder of code without __init__.py",
        "src/afterwatch/errors.py:1: errors may not import settings; it may: —",
        "src/afterwatch/net/__init__.py:1: net may not import memory; it may: security, settings",
        "src/afterwatch/security/__init__.py:1: security may not import net; it may: settings",
    ]
    assert cycles(package) == ["memory → net → memory", "memory → security → net → memory"]
