"""Law: the audit log is read and verified from the command line, by status as well as by words."""

import json
import sqlite3

from afterwatch.cli.security import audit_log
from tests.conftest import Run


def test_an_empty_log(afterwatch: Run) -> None:
    assert afterwatch("security", "events").stdout == "no events\n"
    assert json.loads(afterwatch("security", "events", "--json").stdout) == {"events": []}
    assert afterwatch("security", "verify").code == 0


def test_events_are_listed_and_filtered(afterwatch: Run) -> None:
    for n in range(3):
        audit_log().append("memory.confirm", "local", [f"mem-{n}"])
    audit_log().append("memory.erase", "local", ["mem-1"], ["memory", "erase"])
    found = json.loads(afterwatch("security", "events", "-n", "2", "--json").stdout)["events"]
    assert [event["seq"] for event in found] == [4, 3]
    assert found[0]["argv"] == ["memory", "erase"]
    assert found[0]["at"].endswith("+00:00")
    out = afterwatch("security", "events", "--kind", "memory.confirm").stdout
    assert "mem-2" in out
    assert "erase" not in out


def test_verify_answers_by_status_and_takes_an_anchor(afterwatch: Run) -> None:
    for n in range(3):
        audit_log().append("memory.confirm", "local", [f"mem-{n}"])
    code, out, _ = afterwatch("security", "verify")
    assert code == 0
    anchor = out.split("anchor: ")[1].strip()
    audit_log().append("memory.confirm", "local", ["mem-9"])
    assert "only extended" in afterwatch("security", "verify", "--anchor", anchor).stdout
    connection = sqlite3.connect(audit_log().path)
    connection.execute("DROP TRIGGER events_keep")
    connection.execute("DELETE FROM events WHERE seq > 2")
    connection.commit()
    connection.close()
    assert afterwatch("security", "verify").code == 0
    code, out, err = afterwatch("security", "verify", "--anchor", anchor)
    assert (code, err) == (1, "")
    assert "row 3" in out
    document = json.loads(afterwatch("security", "verify", "--anchor", anchor, "--json").stdout)
    assert (document["ok"], document["broken"]) == (False, 3)
    assert afterwatch("security", "verify", "--anchor", "x").code == 2
