"""Law: time comes from a clock, is aware and in UTC, and a fixed clock moves only when told to."""

from datetime import UTC, datetime, timedelta, timezone

import pytest

from afterwatch.settings.clock import Clock, FixedClock, SystemClock

START = datetime(2026, 3, 1, 12, tzinfo=timezone(timedelta(hours=2)))


def test_the_system_clock_is_aware_and_in_utc() -> None:
    clock: Clock = SystemClock()
    before = datetime.now(UTC)
    now = clock.now()
    assert now.tzinfo is UTC
    assert before <= now <= datetime.now(UTC)
    assert -24 * 60 < clock.offset_minutes() < 24 * 60


def test_a_fixed_clock_stands_still_and_advances() -> None:
    clock: FixedClock = FixedClock(START, offset=120)
    assert clock.now() == clock.now() == START
    assert clock.now().tzinfo is UTC
    clock.advance(30, days=1)
    assert clock.now() == START + timedelta(days=1, seconds=30)
    assert clock.offset_minutes() == 120


def test_a_fixed_clock_with_a_step_moves_on_after_each_look() -> None:
    clock = FixedClock(START, step=5)
    assert [clock.now() - START for _ in range(3)] == [timedelta(seconds=n) for n in (0, 5, 10)]


def test_a_naive_start_is_refused() -> None:
    with pytest.raises(ValueError, match="aware"):
        FixedClock(datetime(2026, 1, 1))
