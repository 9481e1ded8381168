"""Law: what is wrong with an installation is said with its remedy, and looking changes nothing."""

import json
import os
from pathlib import Path

import pytest

from afterwatch.cli.security import audit_log
from afterwatch.settings.paths import config_file, ensure_home, home
from tests.conftest import Run


def checks(afterwatch: Run, status: int) -> dict[str, dict[str, str]]:
    code, out, err = afterwatch("doctor", "--json")
    assert (code, err) == (status, "")
    document = json.loads(out)
    assert document["ok"] is (status == 0)
    return {check["name"]: check for check in document["checks"]}


def test_a_fresh_installation_is_well_and_stays_untouched(afterwatch: Run) -> None:
    found = checks(afterwatch, 0)
    assert {"python", "sqlite", "home", "config", "audit", "embedder", "disk"} <= set(found)
    assert {check["status"] for check in found.values()} == {"ok"}
    assert not home().exists()
    code, out, _ = afterwatch("doctor")
    assert code == 0
    assert "FTS5" in out


@pytest.mark.skipif(os.name != "posix", reason="modes are POSIX")
def test_an_open_home_is_a_warning(afterwatch: Run) -> None:
    ensure_home().chmod(0o755)
    found = checks(afterwatch, 0)
    assert found["home"]["status"] == "warn"
    assert found["home"]["remedy"].startswith("chmod 700")
    assert "chmod 700" in afterwatch("doctor").stdout


def test_a_wrong_setting_is_a_failed_check_not_the_end(afterwatch: Run) -> None:
    ensure_home()
    config_file().write_text("[memory]\nnope = 1\n")
    found = checks(afterwatch, 1)
    assert found["config"]["status"] == "fail"
    assert str(config_file()) in found["config"]["what"]
    assert found["python"]["status"] == "ok"


def test_a_broken_audit_log_fails(afterwatch: Run) -> None:
    audit_log().append("run", "local")
    assert checks(afterwatch, 0)["audit"]["what"] == "1 events, whole"
    audit_log().path.write_bytes(b"no database at all" * 300)
    for path in home().glob("audit.db-*"):
        path.unlink()
    assert checks(afterwatch, 1)["audit"]["status"] == "fail"


def test_a_file_in_place_of_the_home_fails(afterwatch: Run) -> None:
    home().write_text("x")
    assert checks(afterwatch, 1)["home"]["status"] == "fail"


def test_a_home_below_a_missing_folder_is_judged_by_what_exists(
    afterwatch: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AFTERWATCH_HOME", str(tmp_path / "a/b/c"))
    assert "made at first use" in checks(afterwatch, 0)["home"]["what"]
