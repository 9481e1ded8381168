"""Law: the package imports at once; memory's read path and `--version` need no third-party module."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import afterwatch as package
from tests.conftest import Run

HEAVY = {"numpy", "pydantic", "rich", "re2"}
REPORT = """
import json, sys
before = set(sys.modules)
{body}
top = {{name.partition(".")[0] for name in set(sys.modules) - before}} - {{"afterwatch"}}
print("\\n" + json.dumps(sorted(top - set(sys.stdlib_module_names))))
"""
ASK = """
import io, contextlib
sys.argv = ["afterwatch", "--version"]
with contextlib.suppress(SystemExit), contextlib.redirect_stdout(io.StringIO()) as out:
    from afterwatch.cli import main
    main()
assert {version!r} in out.getvalue(), out.getvalue()
"""


def loaded(body: str, path: Path | None = None) -> set[str]:
    """Third-party top-level modules that a fresh Python loads while it runs `body`."""
    env = {**os.environ, **({"PYTHONPATH": str(path)} if path else {})}
    code = REPORT.format(body=body)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=env, check=False)
    assert done.returncode == 0, done.stderr
    return set(json.loads(done.stdout.splitlines()[-1]))


def test_importing_the_package_loads_the_standard_library_alone() -> None:
    assert loaded("import afterwatch, afterwatch.errors") == set()


def test_memory_is_read_with_the_standard_library_alone() -> None:
    assert loaded("import afterwatch.memory.reading") == set()


def test_version_loads_nothing_heavy() -> None:
    assert not loaded(ASK.format(version=package.__version__)) & HEAVY


def test_version_is_what_the_command_says(afterwatch: Run) -> None:
    code, out, err = afterwatch("--version")
    assert (code, err) == (0, "")
    assert package.__version__ in out


# --- the check can fail ----------------------------------------------------------------------------


def test_it_finds_a_heavy_import(tmp_path: Path) -> None:
    (tmp_path / "sample.py").write_text("def f():\n    import numpy.linalg\nf()\nimport shellingham", "utf-8")
    assert loaded("import sample", tmp_path) == {"numpy", "sample", "shellingham"}


def test_it_finds_a_heavy_command(tmp_path: Path) -> None:
    """A stand-in for the package whose command imports too much, or says another version."""
    (tmp_path / "afterwatch/cli").mkdir(parents=True)
    (tmp_path / "afterwatch/__init__.py").touch()
    text = "import pydantic\ndef main():\n    print('9.9')\n    raise SystemExit(0)\n"
    (tmp_path / "afterwatch/cli/__init__.py").write_text(text, "utf-8")
    assert "pydantic" in loaded(ASK.format(version="9.9"), tmp_path)
    with pytest.raises(AssertionError, match=r"9\.9"):
        loaded(ASK.format(version="1.0"), tmp_path)
