"""Law: whatever is written, in whatever order and by whom, the store holds what a dictionary would hold."""

import copy
import shutil
import tempfile
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule, run_state_machine_as_test

from afterwatch.errors import UserError
from afterwatch.memory import Channel, Memory, Outcome, Result, Scope, View
from afterwatch.memory.model import AGENT as BY_AGENT
from afterwatch.memory.model import GLOBAL
from afterwatch.memory.model import USER as BY_USER
from afterwatch.settings.clock import FixedClock
from tests.memory.support import (
    AGENT,
    SHOP,
    START,
    USER,
    events_of,
    everything,
    ids,
    index_problems,
    item_problems,
    keywords_only,
    word,
)

T = TypeVar("T")
WRITERS = st.sampled_from([0, 1, 2])
"""Two Memory objects; 2 is the first one in a second thread."""
SUBJECTS = st.sampled_from(["pref.editor", "project.release_day"])
SCOPES = st.sampled_from([GLOBAL, SHOP])
PICK = st.integers(min_value=0, max_value=10_000)


@dataclass
class Known:
    """What the model knows of an item."""

    id: str
    word: str
    text: str
    scope: Scope
    origin: str
    subject: str | None = None
    quotes: tuple[str, str] | None = None
    status: str = "active"
    tier: str = "hot"
    epistemic: str = "observed-once"
    superseded_by: str | None = None
    sources: list[str] = field(default_factory=list)


@dataclass
class Model:
    """The store as dictionaries."""

    items: dict[str, Known] = field(default_factory=dict)
    events: Counter[str] = field(default_factory=Counter)

    def current(self, subject: str, scope: Scope) -> Known | None:
        held = [i for i in self.items.values() if (i.subject, i.scope, i.status) == (subject, scope, "active")]
        assert len(held) <= 1
        return held[0] if held else None


def view_of(user: bool, scope: Scope = GLOBAL) -> View:
    return View(channel=Channel.TTY if user else Channel.PYTHON, scopes=(scope,))


class Writers(RuleBasedStateMachine):
    """Two writers on one home, a second thread, and a dictionary beside them."""

    @initialize()
    def begin(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="stateful-"))
        self.home = self.folder / "home"
        self.clock = FixedClock(START, step=1)
        self.memories = [keywords_only(self.home, self.clock) for _ in range(2)]
        self.thread = ThreadPoolExecutor(1)
        self.model = Model()
        self.saved: list[tuple[Path, Model]] = []
        self.given: set[str] = set()
        self.number = 0
        self.add(0, False, GLOBAL)  # before the first write there is no space to speak of

    def teardown(self) -> None:
        if not hasattr(self, "thread"):
            return
        try:
            self.compare()
        finally:
            self.thread.shutdown()
            for memory in self.memories:
                memory.close()
            shutil.rmtree(self.folder)

    def run(self, by: int, act: Callable[[Memory], T]) -> T:
        return self.thread.submit(act, self.memories[0]).result() if by == 2 else act(self.memories[by])

    def fresh(self) -> str:
        self.number += 1
        return word(self.number)

    def pick(self, at: int) -> Known:
        known = list(self.model.items.values())
        return known[at % len(known)]

    def inserted(self, outcome: Outcome, known: Known) -> None:
        assert outcome.id is not None
        assert outcome.id not in self.given, "an id was given out twice"
        self.given.add(outcome.id)
        known.id = outcome.id
        if known.origin == BY_USER:
            known.epistemic = "confirmed"
        known.sources.append("tty:local" if known.origin == BY_USER else "python:local")
        self.model.items[outcome.id] = known
        self.model.events["add"] += 1

    # -- writing ----------------------------------------------------------------------------------------------------

    @rule(by=WRITERS, user=st.booleans(), scope=SCOPES)
    def add(self, by: int, user: bool, scope: Scope) -> None:
        own = self.fresh()
        text = f"Note {own} belongs to the runbook"
        outcome = self.run(by, lambda memory: memory.add(view_of(user, scope), text))
        assert outcome.result is Result.INSERTED
        self.inserted(outcome, Known("", own, text, scope, BY_USER if user else BY_AGENT))

    @rule(by=WRITERS, subject=SUBJECTS, scope=SCOPES)
    def quote(self, by: int, subject: str, scope: Scope) -> None:
        current = self.model.current(subject, scope)
        if current is None:
            return
        own = self.fresh()
        last = subject.rpartition(".")[2].replace("_", " ")
        text = f"They said {own} since the {last} is {current.word} here"
        outcome = self.run(by, lambda memory: memory.add(view_of(False, scope), text))
        assert outcome.result is Result.INSERTED
        self.inserted(outcome, Known("", own, text, scope, BY_AGENT, quotes=(subject, current.word)))

    @rule(by=WRITERS, user=st.booleans(), subject=SUBJECTS, scope=SCOPES)
    def remember(self, by: int, user: bool, subject: str, scope: Scope) -> None:
        own = self.fresh()
        outcome = self.run(by, lambda memory: memory.remember(view_of(user, scope), subject, own))
        current = self.model.current(subject, scope)
        if current is not None and current.origin == BY_USER and not user:
            assert (outcome.result, outcome.reason) == (Result.REFUSED, "user_holds")
            self.model.events["refused"] += 1
            return
        assert outcome.result is (Result.SUPERSEDED if current else Result.INSERTED)
        self.inserted(outcome, Known("", own, own, scope, BY_USER if user else BY_AGENT, subject))
        if current is not None:
            self.displaced(current, outcome)

    def displaced(self, old: Known, outcome: Outcome) -> None:
        assert outcome.displaced == (old.id,)
        old.status, old.superseded_by = "superseded", outcome.id
        self.model.events["supersede"] += 1
        quoting = [
            known
            for known in self.model.items.values()
            if known.quotes == (old.subject, old.word) and known.scope == old.scope and known.status == "active"
        ]
        for known in quoting[:3]:
            known.status = "pending-cleanup"
        assert outcome.pending_cleanup == tuple(known.id for known in quoting[:3])
        self.model.events["pending-cleanup"] += len(quoting[:3])

    @precondition(lambda self: self.model.items)
    @rule(by=WRITERS, user=st.booleans(), at=PICK)
    def repeat(self, by: int, user: bool, at: int) -> None:
        known = self.pick(at)
        if known.status == "superseded" or known.subject is not None:
            return
        outcome = self.run(by, lambda memory: memory.add(view_of(user, known.scope), known.text))
        assert outcome.id == known.id
        source = "tty:local" if user else "python:local"
        raised = user and known.origin != BY_USER
        changes = raised or ((user or known.origin != BY_USER) and known.tier == "cold")
        if source in known.sources and not changes:
            assert outcome.result is Result.UNCHANGED
            return
        assert outcome.result is (Result.CORROBORATED if raised else Result.MERGED)
        self.model.events["merge"] += 1
        known.tier = "hot" if changes else known.tier
        known.sources += [] if source in known.sources else [source]
        if raised:
            known.origin, known.epistemic = BY_USER, "confirmed"

    # -- upkeep -----------------------------------------------------------------------------------------------------

    @precondition(lambda self: self.model.items)
    @rule(by=WRITERS, user=st.booleans(), at=PICK)
    def cool(self, by: int, user: bool, at: int) -> None:
        known = self.pick(at)
        outcome = self.run(by, lambda memory: memory.cool(USER if user else AGENT, [known.id]))[0]
        if known.tier == "cold":
            assert outcome.result is Result.UNCHANGED
        elif known.origin == BY_USER and not user:
            assert outcome.result is Result.REFUSED
            self.model.events["cool-request"] += 1
        else:
            assert outcome.cooled == (known.id,)
            known.tier = "cold"
            self.model.events["cool"] += 1

    @precondition(lambda self: self.model.items)
    @rule(by=WRITERS, at=PICK)
    def warm(self, by: int, at: int) -> None:
        known = self.pick(at)
        if known.origin == BY_USER and known.tier == "cold":
            outcome = self.run(by, lambda memory: memory.warm(AGENT, [known.id]))[0]
            assert (outcome.result, outcome.reason) == (Result.REFUSED, "user_holds")
            self.model.events["warm-request"] += 1
        outcome = self.run(by, lambda memory: memory.warm(USER, [known.id]))[0]
        assert outcome.result is (Result.CHANGED if known.tier == "cold" else Result.UNCHANGED)
        self.model.events["warm"] += known.tier == "cold"
        known.tier = "hot"

    @precondition(lambda self: self.model.items)
    @rule(by=WRITERS, user=st.booleans(), at=PICK)
    def confirm(self, by: int, user: bool, at: int) -> None:
        known = self.pick(at)
        outcome = self.run(by, lambda memory: memory.confirm(USER if user else AGENT, known.id))
        if not user:
            assert (outcome.result, outcome.reason) == (Result.REFUSED, "needs_user")
            self.model.events["confirm-request"] += 1
        elif (known.origin, known.epistemic) == (BY_USER, "confirmed"):
            assert outcome.result is Result.UNCHANGED
        else:
            assert outcome.result is Result.CHANGED
            known.origin, known.epistemic = BY_USER, "confirmed"
            self.model.events["confirm"] += 1

    @precondition(lambda self: self.model.items)
    @rule(by=WRITERS, at=PICK)
    def keep(self, by: int, at: int) -> None:
        known = self.pick(at)
        outcome = self.run(by, lambda memory: memory.keep(USER, ids=[known.id]))[0]
        waiting = known.status == "pending-cleanup"
        assert outcome.result is (Result.CHANGED if waiting else Result.UNCHANGED)
        if waiting:
            known.status = "active"
            self.model.events["keep"] += 1

    # -- whole files ------------------------------------------------------------------------------------------------

    @precondition(lambda self: self.model.events)  # of nothing there is no backup
    @rule(by=WRITERS)
    def backup(self, by: int) -> None:
        path = self.folder / f"backup-{len(self.saved)}.db"
        self.run(by, lambda memory: memory.backup(USER, path))
        self.saved.append((path, copy.deepcopy(self.model)))

    @precondition(lambda self: self.saved)
    @rule(by=WRITERS, at=PICK)
    def restore(self, by: int, at: int) -> None:
        path, model = self.saved[at % len(self.saved)]
        self.run(by, lambda memory: memory.restore(USER, path))
        self.model = copy.deepcopy(model)

    @rule(which=st.sampled_from([0, 1]))
    def reopen(self, which: int) -> None:
        self.memories[which].close()
        self.memories[which] = keywords_only(self.home, self.clock)

    @rule(by=WRITERS)
    def reindex(self, by: int) -> None:
        self.run(by, lambda memory: memory.reindex(AGENT))

    # -- comparing --------------------------------------------------------------------------------------------------

    @rule(by=WRITERS, at=PICK)
    def look(self, by: int, at: int) -> None:
        """One item, its history and its word, by any writer."""
        if not self.model.items:
            with pytest.raises(UserError):
                self.run(by, lambda memory: memory.get(AGENT, "mem-2024-03-01-001"))
            return
        known = self.pick(at)
        self.run(by, lambda memory: self.compare_one(memory, known))

    def compare_one(self, memory: Memory, known: Known) -> None:
        item = memory.get(AGENT, known.id)
        assert item.text == known.text
        assert (item.status, item.tier, item.origin, item.epistemic, item.superseded_by) == (
            *(known.status, known.tier, known.origin, known.epistemic),
            known.superseded_by,
        )
        assert (item.subject, item.scope, list(item.sources)) == (known.subject, known.scope, known.sources)
        assert (known.id in ids(memory, known.word)) is (known.status != "superseded")
        same = [i for i in self.model.items.values() if (i.subject, i.scope) == (known.subject, known.scope)]
        chain = [i.id for i in same] if known.subject else [known.id]
        assert [i.id for i in memory.history(AGENT, known.id)] == chain

    def compare(self) -> None:
        for memory in self.memories:
            assert everything(memory).keys() == self.model.items.keys()
            for known in self.model.items.values():
                self.compare_one(memory, known)
            counted = events_of(memory)
            del counted["nominate"]
            assert counted == +self.model.events
            assert memory.problems(AGENT) == {"local": []}
        assert item_problems(self.home) == []
        assert index_problems(self.home, self.memories[0]) == []


def steps(examples: int, length: int) -> settings:
    return settings(
        max_examples=examples, stateful_step_count=length, deadline=None, suppress_health_check=list(HealthCheck)
    )


def test_two_writers_and_a_dictionary_agree() -> None:
    run_state_machine_as_test(Writers, settings=steps(8, 40))


@pytest.mark.soak
def test_two_writers_and_a_dictionary_agree_for_long() -> None:
    run_state_machine_as_test(Writers, settings=steps(80, 100))
