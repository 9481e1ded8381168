"""Law: what is not documented is not there, and what the docs show runs."""

import importlib
import os
import re
import subprocess
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import afterwatch
from tests import conftest

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", *sorted(DOCS.rglob("*.md"))]
SETS_UP = ("echo", "printf", "mkdir", "cat")  # lines that prepare an example run too

# Examples that do not run: "page: first line" -> reason. Few, and each a decision.
NOT_RUN: dict[str, str] = {
    "cli.md: afterwatch bench retrieval locomo10.json --conversations 6-10 --timeline anchored": "not our data",
}
NOT_RUN_AT_MOST = 6
MARK = "<!-- not run -->"


# --- rooms, commands, settings ---------------------------------------------------------------------


def rooms_without(package: Path, folder: Path, form: str) -> list[str]:
    """Rooms that lack their page or test folder; `form` gives its name."""
    rooms = sorted(path.parent.name for path in package.glob("*/__init__.py"))
    return [room for room in rooms if not (folder / form.format(room)).exists()]


def commands(group: Any, path: str = "afterwatch") -> Iterator[str]:
    """Full names of all commands below a typer group, hidden and lazily loaded ones included."""
    context = group.context_class(group)
    for name in group.list_commands(context):
        child = group.get_command(context, name)
        assert child is not None, f"{path} lists {name} but does not have it"
        yield f"{path} {name}"
        if hasattr(child, "list_commands"):
            yield from commands(child, f"{path} {name}")


def root_command() -> Any:
    """The group of the whole command line, as typer runs it."""
    from typer import Typer
    from typer.main import get_command

    app = importlib.import_module("afterwatch.cli").app
    return get_command(app) if isinstance(app, Typer) else app


def absent(words: Iterable[str], text: str) -> list[str]:
    """The words that do not stand in the text as a whole: `memory add` is not found in `memory add-all`."""
    return [word for word in words if not re.search(rf"(?<![\w.-]){re.escape(word)}(?![\w-])", text)]


def test_every_room_has_a_page() -> None:
    assert not rooms_without(ROOT / "src/afterwatch", DOCS, "{}.md")


def test_every_room_has_a_test_package() -> None:
    """A package, because two rooms may have test files of one name."""
    assert not rooms_without(ROOT / "src/afterwatch", ROOT / "tests", "{}/__init__.py")


def test_every_command_stands_in_the_page_of_the_command_line() -> None:
    names = list(commands(root_command()))
    assert names
    assert not absent(names, (DOCS / "cli.md").read_text("utf-8"))


def test_every_setting_stands_in_the_docs() -> None:
    from afterwatch.settings.fields import fields_of

    keys = fields_of(importlib.import_module("afterwatch.cli.sections").SECTIONS)
    assert keys
    assert not absent(keys, "\n".join(page.read_text("utf-8") for page in DOCS.rglob("*.md")))


# --- examples --------------------------------------------------------------------------------------


class Example(NamedTuple):
    """A fenced block: where it begins, language, lines, and whether the mark stands before it."""

    line: int
    language: str
    lines: list[str]
    marked: bool


def fences(text: str) -> Iterator[Example]:
    """All fenced blocks of a page, in order."""
    block: Example | None = None
    before = ""
    for number, line in enumerate(text.splitlines(), 1):
        bare = line.strip()
        if block is not None and bare == "```":
            yield block
            block, before = None, ""
        elif block is not None:
            block.lines.append(bare)
        elif bare.startswith("```"):
            block = Example(number, bare[3:], [], before == MARK)
        elif bare:
            before = bare
    assert block is None, f"the fence of line {block.line} is not closed"


def inputs(example: Example) -> Iterator[str]:
    """The lines typed at the prompt, continuations joined."""
    text = "\n".join(example.lines).replace("\\\n", "")
    for line in text.splitlines():
        if line.startswith("$ "):
            yield line[2:].replace(".venv/bin/afterwatch", "afterwatch").strip()


def typed(example: Example) -> list[str]:
    """The lines of an example that a test can run."""
    return [line for line in inputs(example) if line.split()[:1] and line.split()[0] in ("afterwatch", *SETS_UP)]


def shells_not_run(text: str) -> list[str]:
    """Blocks that show our command but would escape the run."""
    blocks = [b for b in fences(text) if b.language != "console" and not b.marked]
    return [
        f"line {block.line}: ```{block.language} shows afterwatch commands; write ```console with $ lines"
        for block in blocks
        if any(re.match(r"(\$ )?(\.venv/bin/)?afterwatch\b", line) for line in block.lines)
    ]


def left_out(page: Path) -> list[str]:
    blocks = [block for block in fences(page.read_text("utf-8")) if block.marked]
    return [f"{page.name}: {next(inputs(block), '')}" for block in blocks]


def run_page(text: str, home: Path) -> list[str]:
    """Run a page's examples in order; what failed, with its output."""
    home.mkdir()
    script = Path(conftest.command()[0]).parent
    env = conftest.environment(conftest.move_home(home / "house"))
    env["PATH"] = f"{script}{os.pathsep}{env.get('PATH', '')}"
    problems = []
    for block in (b for b in fences(text) if b.language == "console" and not b.marked):
        for line in typed(block):
            done = subprocess.run(
                ["sh", "-c", line],
                cwd=home,
                env=env,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=300,
            )
            if done.returncode:
                said = (done.stdout + done.stderr).decode("utf-8", "replace")
                problems.append(f"line {block.line}: `{line}` ended with {done.returncode}\n{said}")
    return problems


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_example_runs(page: Path, tmp_path: Path) -> None:
    problems = run_page(page.read_text("utf-8"), tmp_path / "page")
    assert not problems, "\n" + "\n".join(problems)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_no_example_escapes_the_run(page: Path) -> None:
    assert not shells_not_run(page.read_text("utf-8"))


def test_examples_that_do_not_run_are_few_and_listed() -> None:
    assert sorted(name for page in PAGES for name in left_out(page)) == sorted(NOT_RUN)
    assert all(NOT_RUN.values())
    assert len(NOT_RUN) <= NOT_RUN_AT_MOST


# --- the pages at the root -------------------------------------------------------------------------


def top_version(changelog: str) -> str:
    """The version of the first `## x.y.z` heading."""
    match = re.search(r"^## \[?(\d+\.\d+\.\d+[\w.]*)", changelog, re.MULTILINE)
    return match[1] if match else ""


def test_the_readme_names_the_two_commands_of_a_newcomer() -> None:
    assert not absent(["make demo", "make test"], (ROOT / "README.md").read_text("utf-8"))


def test_the_rules_stay_short() -> None:
    assert len((ROOT / "AGENTS.md").read_text("utf-8").splitlines()) < 100


def test_the_changelog_begins_with_this_version() -> None:
    assert top_version((ROOT / "CHANGELOG.md").read_text("utf-8")) == afterwatch.__version__


# --- the check can fail ----------------------------------------------------------------------------

PAGE = f"""
```console
$ mkdir notes
$ echo one \\
    two > notes/a
one
$ WORD=two cat notes/a | grep 'one two'
$ cat notes/b
$ make demo
```
```sh
afterwatch demo
```
{MARK}

```console
$ afterwatch serve --forever
```
"""


def test_it_runs_examples_and_reports_failures(tmp_path: Path) -> None:
    problems = run_page(PAGE, tmp_path / "page")
    assert [problem.split("\n")[0] for problem in problems] == ["line 2: `cat notes/b` ended with 1"]
    assert (tmp_path / "page/notes/a").read_text("utf-8").split() == ["one", "two"]


def test_an_example_runs_the_real_command_in_a_home_of_its_own(tmp_path: Path) -> None:
    text = "```console\n$ afterwatch --no-such-option\n$ echo $AFTERWATCH_HOME > home\n```"
    assert len(run_page(text, tmp_path / "page")) == 1
    assert Path((tmp_path / "page/home").read_text("utf-8").strip()).is_relative_to(tmp_path)


def test_it_finds_examples_that_escape_or_are_left_out(tmp_path: Path) -> None:
    (tmp_path / "p.md").write_text(PAGE, "utf-8")
    assert shells_not_run(PAGE) == ["line 11: ```sh shows afterwatch commands; write ```console with $ lines"]
    assert left_out(tmp_path / "p.md") == ["p.md: afterwatch serve --forever"]
    with pytest.raises(AssertionError, match="line 1 is not closed"):
        list(fences("```console\n$ afterwatch demo"))


def test_it_finds_commands_and_settings_without_docs() -> None:
    import typer

    app, group = typer.Typer(), typer.Typer()
    group.command("add", hidden=True)(lambda: None)
    group.command("add-all")(lambda: None)
    app.command("demo")(lambda: None)
    app.add_typer(group, name="memory")
    names = list(commands(typer.main.get_command(app)))
    assert sorted(names) == [f"afterwatch {n}" for n in ("demo", "memory", "memory add", "memory add-all")]
    assert absent(names, "`afterwatch demo`, `afterwatch memory add-all`") == ["afterwatch memory add"]
    assert absent(["memory.floor"], "`xmemory.floor` `memory.floor-x`") == ["memory.floor"]


def test_it_finds_rooms_without_a_page(tmp_path: Path) -> None:
    for room in ("net", "memory"):
        (tmp_path / room).mkdir()
        (tmp_path / room / "__init__.py").touch()
    (tmp_path / "net.md").touch()
    assert rooms_without(tmp_path, tmp_path, "{}.md") == ["memory"]


def test_it_reads_the_top_version() -> None:
    assert top_version("# Changelog\n\n## 0.2.0rc1 (2030)\n\n## 0.1.0\n") == "0.2.0rc1"
    assert top_version("# Changelog\n") == ""
