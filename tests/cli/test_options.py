"""Law: a date means one moment, said in advance; a word of a closed list completes and is the room's own word."""

import time

import pytest

from afterwatch.cli.options import Category, Verdict, moment
from afterwatch.errors import UserError
from afterwatch.memory.curation import VERDICTS
from afterwatch.memory.intake import CATEGORIES
from tests.conftest import Run


def test_dates_are_local_unless_they_name_a_zone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "Europe/Berlin")
    time.tzset()
    hour = 3_600_000_000
    try:
        start, end = moment("2026-03-29"), moment("2026-03-29", end=True)
        assert start is not None
        assert end is not None
        assert end + 1 - start == 23 * hour  # the clocks go forward that day
        assert moment("2026-03-29T00:00+01:00") == moment("2026-03-28T23:00Z") == start
        assert moment("2026-03-29T12:00") == start + 11 * hour
        assert moment(None) is None
    finally:
        monkeypatch.undo()
        time.tzset()
    for bad in ("", "tomorrow", "2026-02-30", "9999-12-31T23:59-14:00", "12:00"):
        with pytest.raises(UserError, match="no date"):
            moment(bad, end=True)


def test_words_of_a_closed_list_complete_and_equal_those_of_the_room(afterwatch: Run) -> None:
    assert tuple(Verdict) == VERDICTS
    assert tuple(Category) == CATEGORIES

    def complete(words: str, at: int) -> list[str]:
        env = {"_AFTERWATCH_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": str(at)}
        return afterwatch(env=env).stdout.split()

    assert complete("afterwatch memory add x --layer e", 5) == ["episodic"]
    assert complete("afterwatch memory list --status st", 4) == ["stale"]
    assert complete("afterwatch memory rate mem-1 h", 4) == ["helpful"]
