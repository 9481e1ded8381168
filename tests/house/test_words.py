"""Law: the tree tells nothing of the machine it was built on, and its lock files pin bytes, not places."""

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LEFT_OUT = {".git", ".venv", "__pycache__", ".hypothesis", "dist", "node_modules", ".scratch", "build"}
LEFT_OUT |= {".pytest_cache", ".mypy_cache", ".ruff_cache"}  # what .gitignore names

PLACE = re.compile(r"(?<![\w.*~}-])/(?:work|root)/[\w.-]*|(?<![\w.*~}-])/home/[A-Za-z_][\w.-]*")
PLACES_WANTED = {"/home/user", "/home/alice", "/home/bob"}  # samples of examples; nobody's machine
INDEX = re.compile(r"--(?:extra-)?index-url|--find-links|--trusted-host|https?://|^\s*-[fi]\s", re.MULTILINE)
ENTRY = re.compile(r"[A-Za-z0-9][\w.-]*(?:\[[\w,-]+\])?==[\w.!+]+(?: ; [^\\]+?)?(?P<hashes>(?: --hash=\S+)*)")
HASH = re.compile(r" --hash=sha256:[0-9a-f]{64}(?= |$)")

# file -> place -> reason: rules and samples that must name such a path.
EXCEPTIONS: dict[str, dict[str, str]] = {}


def texts(root: Path) -> Iterator[tuple[str, str]]:
    """Name and text of every text file of the tree."""
    for folder, folders, files in os.walk(root):
        folders[:] = sorted(name for name in folders if name not in LEFT_OUT and not name.endswith(".egg-info"))
        for file in sorted(files):
            path = Path(folder, file)
            data = path.read_bytes()
            if b"\0" not in data[:8192] and path.name != ".git":
                yield path.relative_to(root).as_posix(), data.decode("utf-8", "replace")


def places(root: Path, exceptions: Mapping[str, Mapping[str, str]]) -> list[str]:
    """Absolute paths of a machine in the tree, and exceptions that nothing needs."""
    problems, needed = [], set()
    for name, text in texts(root):
        for number, line in enumerate(text.splitlines(), 1):
            found = set(PLACE.findall(line)) - PLACES_WANTED
            needed |= {(name, place) for place in found}
            bad = [place for place in sorted(found) if not exceptions.get(name, {}).get(place)]
            problems += [f"{name}:{number}: {place}" for place in bad]
    stale = {(name, place) for name in exceptions for place in exceptions[name]} - needed
    return problems + [f"{name}: {place} is gone: drop its exception" for name, place in sorted(stale)]


def entries(text: str) -> Iterator[str]:
    """Logical lines of a requirements lock file, without comments."""
    for line in re.sub(r"\\\n\s*", "", text).splitlines():
        if line.strip() and not line.lstrip().startswith("#"):
            yield re.sub(r"\s+", " ", line.strip())


def lock_problems(text: str) -> list[str]:
    """Entries without an exact version or without hashes, and lines that name a place to fetch from."""
    problems = [f"names an index: {match[0].strip()}" for match in INDEX.finditer(text)]
    for entry in entries(text):
        match = ENTRY.fullmatch(entry)
        if not match:
            problems.append(f"no pinned entry: {entry[:60]}")
        elif not match["hashes"] or HASH.sub("", match["hashes"]):
            problems.append(f"no sha256: {entry[:60]}")
    return problems


def test_no_path_of_a_machine_in_the_tree() -> None:
    problems = places(ROOT, EXCEPTIONS)
    assert not problems, "\n" + "\n".join(problems)


@pytest.mark.parametrize("path", sorted(ROOT.glob("*.lock")), ids=lambda path: path.name)
def test_lock_files_pin_every_part_by_hash_and_name_no_index(path: Path) -> None:
    text = path.read_text("utf-8")
    assert lock_problems(text) == []
    assert len(list(entries(text))) > 3


def test_there_are_lock_files() -> None:
    assert {path.name for path in ROOT.glob("*.lock")} >= {"requirements.lock", "requirements-parts.lock"}


# --- the check can fail ----------------------------------------------------------------------------


def test_it_finds_paths_of_a_machine(tmp_path: Path) -> None:
    deep = tmp_path / "docs"
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git/config").write_text("/" + "work/main", encoding="utf-8")
    deep.mkdir()
    bad = [
        "see /" + "work/main/x",
        "'/" + "root/.cache'",
        "HOME=/" + "home/jo",
        "/" + "home/user",
        "a/work/b ~/work/x /home/*/.ssh",
    ]
    (deep / "a.md").write_text("\n".join(bad), encoding="utf-8")
    found = [f"docs/a.md:{number}: /{place}" for number, place in enumerate(["work/main", "root/.cache", "home/jo"], 1)]
    assert places(tmp_path, {}) == found
    reasons = {"docs/a.md": {"/" + "root/.cache": "a rule", "/" + "root/x": "a rule"}}
    assert places(tmp_path, reasons) == [
        found[0],
        found[2],
        "docs/a.md: /" + "root/x is gone: drop its exception",
    ]


SHA = f"--hash=sha256:{'0' * 64}"
BAD = [
    ("a==1", "no sha256: a==1"),
    (f"a==1 \\\n    {SHA} \\\n    --hash=md5:00", "no sha256: a==1"),
    (f"a==1 {SHA[:-1]}", "no sha256: a==1"),
    (f"a>=1 {SHA}", "no pinned entry: a>=1"),
    (f"a @ file:///x {SHA}", "no pinned entry: a @"),
    ("--extra-index-url x", "names an index"),
    ("-i x", "names an index"),
    ("# from https://pypi.example", "names an index: https://"),
]


@pytest.mark.parametrize(("text", "problem"), BAD)
def test_it_finds_what_a_lock_file_may_not_hold(text: str, problem: str) -> None:
    assert any(line.startswith(problem) for line in lock_problems(text))


def test_it_accepts_a_whole_entry() -> None:
    text = f"# made by a tool\na.b[c,d]==1.0+x ; python_version < '3.12' \\\n    {SHA} \\\n    {SHA}\n"
    assert lock_problems(text) == []
