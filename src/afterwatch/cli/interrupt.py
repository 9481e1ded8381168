"""Ctrl-C during work in steps: the step under way ends whole, so that what was done can be said."""

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def between_steps() -> Iterator[Callable[[], None]]:
    """Inside, Ctrl-C is noted, and raised when the callable is called after a step. A second one is raised at once."""
    noted: list[int] = []

    def note(number: int, _frame: FrameType | None) -> None:
        noted.append(number)
        if len(noted) > 1:
            raise KeyboardInterrupt

    def step_done() -> None:
        if noted:
            raise KeyboardInterrupt

    try:
        before = signal.signal(signal.SIGINT, note)
    except ValueError:  # another thread than the first one: Ctrl-C is not raised here
        yield step_done
        return
    try:
        yield step_done
    finally:
        signal.signal(signal.SIGINT, before)
