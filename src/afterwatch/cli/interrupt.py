"""Ctrl-C: none is lost, and in work in steps the one under way ends whole, so that what was done can be said."""

import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType


def lose_none() -> None:
    """Raise Ctrl-C again if Python drops it, as it does inside the callback of a weak reference or a finaliser."""
    report = sys.unraisablehook

    def again(dropped: "sys.UnraisableHookArgs") -> None:
        if not issubclass(dropped.exc_type, KeyboardInterrupt):
            report(dropped)
            return
        import _thread
        import threading

        # a moment later: here it would be dropped once more
        threading.Timer(0.02, _thread.interrupt_main).start()

    sys.unraisablehook = again


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
