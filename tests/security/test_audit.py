"""Law: what is recorded stays whole and in order, and any change of it shows."""

import json
import os
import sqlite3
import stat
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest

from afterwatch.errors import Defect, Unavailable, UserError
from afterwatch.security.audit import GENESIS, AuditLog
from afterwatch.settings.clock import FixedClock

START = datetime(2026, 3, 1, tzinfo=UTC)


@pytest.fixture
def log(tmp_path: Path) -> AuditLog:
    return AuditLog(tmp_path / "home/audit.db", FixedClock(START, step=1))


def tamper(log: AuditLog, *statements: str) -> None:
    """Change the file as somebody with its rights can: the triggers are no obstacle."""
    connection = sqlite3.connect(log.path)
    connection.execute("DROP TRIGGER IF EXISTS events_keep")
    connection.execute("DROP TRIGGER IF EXISTS events_fixed")
    for statement in statements:
        connection.execute(statement)
    connection.commit()
    connection.close()


def fill(log: AuditLog, count: int = 5) -> list[str]:
    return [log.append("memory.confirm", "local", [f"mem-2026-03-01-{n:03}"]) for n in range(count)]


def test_an_empty_log_is_whole_and_creates_nothing(log: AuditLog) -> None:
    assert log.verify().ok
    assert log.head() == f"0:{GENESIS}"
    assert log.events() == []
    assert not log.path.exists()


def test_events_come_back_newest_first(log: AuditLog) -> None:
    anchors = fill(log, 3)
    log.append("memory.erase", "user:ann", ["a@store"], ["memory", "erase", "a"])
    newest = log.events(limit=1)[0]
    assert (newest.seq, newest.kind, newest.actor) == (4, "memory.erase", "user:ann")
    assert (newest.subjects, newest.argv) == (("a@store",), ("memory", "erase", "a"))
    assert newest.at_us == round(START.timestamp() * 1e6) + 3_000_000
    assert [event.seq for event in log.events(kind="memory.confirm")] == [3, 2, 1]
    assert log.events(limit=10)[1].hash == anchors[2].split(":")[1]
    assert log.head().startswith("4:")


@pytest.mark.skipif(os.name != "posix", reason="modes are POSIX")
def test_the_file_is_private(log: AuditLog) -> None:
    old = os.umask(0)
    try:
        fill(log)
    finally:
        os.umask(old)
    assert stat.S_IMODE(log.path.stat().st_mode) == 0o600


def test_credentials_and_long_words_do_not_enter(log: AuditLog) -> None:
    secret = "hun" + "ter2222"
    log.append("run", "local", [], ["login", "--password", secret, f"token={secret}", "x" * 1000])
    log.append("run", "local", [], ["\ud800"])
    assert secret not in json.dumps([event.argv for event in log.events()])
    assert max(len(word) for event in log.events() for word in event.argv) == 256
    assert log.verify().ok


def test_text_in_place_of_an_id_is_a_defect(log: AuditLog) -> None:
    with pytest.raises(Defect):
        log.append("memory.add", "local", ["the user likes tea"])
    assert not log.path.exists()


@pytest.mark.parametrize(
    ("statement", "row"),
    [
        ("UPDATE events SET actor = 'x' WHERE seq = 3", 3),
        ("UPDATE events SET argv = x'00ff' WHERE seq = 3", 3),
        ("UPDATE events SET argv = CAST(x'ff' AS TEXT) WHERE seq = 3", 3),
        ("UPDATE events SET at_us = 'x' WHERE seq = 2", 2),
        ("UPDATE events SET hash = replace(hash, 'a', 'b') WHERE seq = 2", 2),
        ("DELETE FROM events WHERE seq = 2", 2),
        ("DELETE FROM events WHERE seq = 1", 1),
        ("UPDATE events SET seq = 9 WHERE seq = 5", 5),
    ],
)
def test_a_changed_row_is_named(log: AuditLog, statement: str, row: int) -> None:
    fill(log)
    tamper(log, statement)
    result = log.verify()
    assert not result.ok
    assert (result.broken, result.events) == (row, row - 1)
    assert result.reason
    assert log.events()  # listing still works


def test_an_anchor_shows_truncation_and_rewriting(log: AuditLog, tmp_path: Path) -> None:
    anchors = fill(log)
    assert log.verify(anchors[2]).ok
    assert log.verify(f"0:{GENESIS}").ok
    tamper(log, "DELETE FROM events WHERE seq > 3")
    assert log.verify().ok  # the chain alone cannot know
    assert log.verify(anchors[2]).ok
    gone = log.verify(anchors[4])
    assert (gone.ok, gone.broken) == (False, 4)
    other = AuditLog(tmp_path / "other.db", FixedClock(START))
    for _ in range(5):
        other.append("forged", "local")
    rewritten = other.verify(anchors[2])
    assert (rewritten.ok, rewritten.broken) == (False, 3)
    assert not AuditLog(tmp_path / "none.db").verify(anchors[0]).ok


def test_a_malformed_anchor_is_an_error_of_the_user(log: AuditLog) -> None:
    for anchor in ("x", "1:zz", "1:" + "0" * 63):
        with pytest.raises(UserError, match="anchor"):
            log.verify(anchor)


def test_rows_can_only_be_added(log: AuditLog) -> None:
    fill(log)
    connection = sqlite3.connect(log.path)
    for statement in ("DELETE FROM events", "UPDATE events SET kind = 'x'"):
        with pytest.raises(sqlite3.IntegrityError, match="only grows"):
            connection.execute(statement)
    connection.close()


def test_a_log_that_cannot_be_written_is_unavailable(tmp_path: Path) -> None:
    (tmp_path / "bad.db").write_bytes(b"no database at all" * 100)
    (tmp_path / "file").write_text("x")
    (tmp_path / "link.db").symlink_to(tmp_path / "elsewhere.db")
    for path in (tmp_path / "bad.db", tmp_path / "file/audit.db", tmp_path / "link.db"):
        with pytest.raises(Unavailable) as caught:
            AuditLog(path).append("run", "local")
        assert caught.value.remedy
    with pytest.raises(Unavailable):
        AuditLog(tmp_path / "bad.db").verify()
    assert not (tmp_path / "elsewhere.db").exists()


def test_several_processes_append_at_once(log: AuditLog) -> None:
    code = (
        "import sys; from pathlib import Path; from afterwatch.security.audit import AuditLog\n"
        "for n in range(40): AuditLog(Path(sys.argv[1])).append('run', sys.argv[2], [f'id-{n}'])"
    )
    running = [subprocess.Popen([sys.executable, "-c", code, str(log.path), f"p{number}"]) for number in range(5)]
    assert [process.wait(120) for process in running] == [0] * 5
    result = log.verify()
    assert (result.ok, result.events) == (True, 200)
    per_actor = {f"p{n}": [e.subjects[0] for e in log.events(500) if e.actor == f"p{n}"] for n in range(5)}
    assert all(found == [f"id-{n}" for n in reversed(range(40))] for found in per_actor.values())


def test_a_log_that_was_moved_away_begins_anew(log: AuditLog) -> None:
    fill(log)
    for path in log.path.parent.iterdir():
        path.unlink()
    assert log.append("run", "local").startswith("1:")
