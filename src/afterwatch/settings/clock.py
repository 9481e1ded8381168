"""Time enters through here, so that a test or a recording can hold it still."""

from datetime import UTC, datetime, timedelta
from typing import Protocol


class Clock(Protocol):
    """What time it is, and how far local time is from UTC."""

    def now(self) -> datetime:
        """Return the current time, aware, in UTC."""
        ...

    def offset_minutes(self) -> int:
        """Return local time minus UTC, in minutes, at `now()`; east of Greenwich is positive."""
        ...


class SystemClock:
    """The clock of this machine."""

    def now(self) -> datetime:
        return datetime.now(UTC)

    def offset_minutes(self) -> int:
        offset = datetime.now().astimezone().utcoffset() or timedelta()
        return round(offset.total_seconds() / 60)


class FixedClock:
    """A clock that moves only when told to.

    `start` must be aware. After each `now()` the clock moves on by `step` seconds (0: it stands still).
    `offset` is the answer of `offset_minutes()`.
    """

    def __init__(self, start: datetime, step: float = 0, *, offset: int = 0) -> None:
        if start.tzinfo is None:
            raise ValueError("FixedClock needs an aware start time")
        self._now = start.astimezone(UTC)
        self._step = timedelta(seconds=step)
        self._offset = offset

    def now(self) -> datetime:
        current = self._now
        self._now = current + self._step
        return current

    def offset_minutes(self) -> int:
        return self._offset

    def advance(self, seconds: float = 0, *, days: float = 0) -> None:
        """Move the clock by `days` and `seconds`; negative values move it back."""
        self._now += timedelta(days=days, seconds=seconds)
