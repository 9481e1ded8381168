"""Law: importing the room costs nothing: patterns are read and compiled at the first redaction."""

import subprocess
import sys

CODE = """
import sys, afterwatch.security, afterwatch.security.redaction, afterwatch.security.audit
assert not {"re2", "rich", "typer", "numpy"} & set(sys.modules), "loaded too early"
assert afterwatch.security.redact("x").text == "x"
assert "re2" in sys.modules
"""


def test_patterns_are_compiled_at_first_use() -> None:
    done = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
