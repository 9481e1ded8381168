"""Does recall return what is relevant and nothing else? PrecisionMemBench, 89 cases, no model involved.

What is seeded: every belief becomes one item of a real memory. Its user is the space, `domain:x` the scope
(workspace x), `user:universal` the global scope and the preference layer, its names the aliases (with `_` also as
spaces), an open question a tag. A belief that is `superseded` or has a `resolved_at` ended in the past. Withheld are
the link `superseded_by`, `why_it_matters` and the participants of relations.

What is asked: pinned items, open questions and the persona (global preferences) are lists; the relevant slot is
`Memory.relevant` without those. `maxBeliefs` limits pinned and relevant items together, pinned ones first.

How the figures come about. The ids expected in the relevant slot are `shouldOnlyInclude`, otherwise `mustInclude`
without pinned beliefs. Of each case precision = right / returned and recall = right / expected; recall is undefined
when nothing is expected, and so is precision when, besides, nothing is returned; returning nothing where something
is expected is precision 0. `precision` and `recall` are the means over the cases where they are defined, as in the
public scorer; it makes one exception that we do not: in a session it leaves out a turn with nothing returned
although something was expected, and counts a pinned belief as found. `slot_precision` is the mean over all cases,
nothing expected and nothing returned counting as 1. `passed` counts cases in which every check of every slot holds
(`mustInclude` and the like). `with_participants` are the same figures when a returned relation brings the beliefs it
links, as the public harness does for every system: that link is the harness's, not ours.
"""

import json
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from afterwatch.bench.report import conditions, digest, whole
from afterwatch.errors import Defect, UserError
from afterwatch.memory import Channel, Draft, Memory, View
from afterwatch.memory.embedders import Embedder, Loading
from afterwatch.memory.model import GLOBAL, Epistemic, Item, Layer, Scope, ScopeKind, micros
from afterwatch.memory.reading import Filter
from afterwatch.memory.settings import MemorySettings
from afterwatch.security.reading import safe_read
from afterwatch.settings.clock import FixedClock

FILES = ("beliefs.seed.json", "retrieval.cases.json", "session-retrieval.cases.json")
MAX_BYTES = 5_000_000
USER = "test-user"
"""Whose memory is asked when a case names nobody."""
BUDGET = {"maxBeliefs": 20, "maxPinnedFacts": 10, "maxQuestions": 15}
"""Used where a case sets none; the public harness has the same, and does not apply the second."""
SESSION = "Session-level noise isolation"
QUESTION_TAG = "open-question"
UNIVERSAL = "user:universal"
EVERYTHING = 10_000
_EPISTEMIC = {
    "active": Epistemic.CONFIRMED,
    "exploratory": Epistemic.OBSERVED_ONCE,
    "inferred": Epistemic.INFERRED,
    "superseded": Epistemic.CONFIRMED,
}
_DATES = ("created_at", "updated_at", "last_reinforced_at", "resolved_at")


@dataclass(frozen=True, slots=True)
class Case:
    """One question in one memory, what is expected of it, and what is remembered after it."""

    id: str
    category: str
    user: str
    scopes: tuple[str, ...]
    question: str
    budget: Mapping[str, int]
    expect: Mapping[str, Any]
    session: bool = False
    create: Mapping[str, Any] | None = None
    update: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Slots:
    """Ids of beliefs by slot, in the order given; the persona as text."""

    pinned: list[str]
    relevant: list[str]
    questions: list[str]
    persona: str


@dataclass(slots=True)
class Figure:
    """Precision and recall of the cases where they are defined."""

    n: int = 0
    precision: list[float] = field(default_factory=list)
    recall: list[float] = field(default_factory=list)
    slots: list[float] = field(default_factory=list)

    def add(self, expected: set[str], returned: Sequence[str]) -> None:
        right = len(expected & set(returned))
        self.n += 1
        if expected or returned:
            self.precision.append(right / len(returned) if returned else 0.0)
        if expected:
            self.recall.append(right / len(expected))
        self.slots.append(self.precision[-1] if expected or returned else 1.0)

    def means(self) -> dict[str, Any]:
        return {"precision": _mean(self.precision), "recall": _mean(self.recall), "n": self.n}


def run(folder: Path, embedder: Loading | None, progress: Callable[[int, int], None] | None = None) -> dict[str, Any]:
    """Measure precision on the three files of PrecisionMemBench.

    Args:
        folder: holds `FILES`.
        embedder: None measures keywords alone.
        progress: called with (cases done, in all).

    Raises:
        UserError: the files are not there or not in their format.
        Unavailable: the embedder is degraded.
    """
    model = whole(embedder) if embedder is not None else None
    texts, beliefs, cases = read(folder)
    scored = Scored({b["_id"]: b for b in beliefs})
    with tempfile.TemporaryDirectory(prefix="afterwatch-bench-") as home, Seeded(Path(home), beliefs, model) as bench:
        for done, case in enumerate(cases, 1):
            scored.add(case, bench.slots(case))
            bench.after(case)
            if progress is not None:
                progress(done, len(cases))
    head = conditions("precision", corpus=digest(*texts), embedder=model.id if model else None, cases=len(cases))
    return {**head, **scored.figures()}


def read(folder: Path) -> tuple[list[str], list[dict[str, Any]], list[Case]]:
    """The three files: as text, the beliefs, and the cases in order.

    Raises:
        UserError: a file is missing or not in its format.
    """
    texts = [safe_read(folder / name, max_bytes=MAX_BYTES) for name in FILES]
    try:
        beliefs, single, sessions = (json.loads(text) for text in texts)
        cases = [_case(one) for one in single]
        cases += [_turn(session, turn) for session in sessions for turn in session["turns"]]
        drafts = [draft_of(belief, _newest(beliefs)) for belief in beliefs]
        users = [belief["user_id"] for belief in beliefs]
    except (ValueError, TypeError, KeyError, AttributeError, IndexError) as error:
        raise UserError("this is no PrecisionMemBench", remedy=f"name a folder with {', '.join(FILES)}") from error
    if not all((drafts, users, cases)):
        raise UserError("there is nothing to measure", remedy="name the folder as it was published")
    return texts, beliefs, cases


def _case(raw: Mapping[str, Any]) -> Case:
    budget = {**BUDGET, **raw.get("budget", {})}
    user = raw.get("userId", USER)
    scopes = tuple(raw["scope"])
    return Case(raw["caseId"], raw["category"], user, scopes, raw["query"], budget, raw["expect"])


def _turn(session: Mapping[str, Any], raw: Mapping[str, Any]) -> Case:
    return Case(
        f"{session['caseId']}#{raw['turnIndex']}",
        SESSION,
        USER,
        tuple(raw["scope"]),
        raw["userMessage"],
        BUDGET,
        raw["expect"],
        session=True,
        create=raw.get("createBeliefAtTurn"),
        update=raw.get("updateBeliefAtTurn"),
    )


# -- the memory that is asked --------------------------------------------------------------------------------------


class Seeded:
    """A memory that holds the beliefs, and answers slot by slot."""

    def __init__(self, home: Path, beliefs: Sequence[Mapping[str, Any]], model: Embedder | None) -> None:
        now = _newest(beliefs) + timedelta(days=1)
        settings = MemorySettings(embedder="none" if model is None else "bundled", cap=0)
        loading = Loading.done(model)
        self._now = now
        self._beliefs = {belief["_id"]: belief for belief in beliefs}
        self.memory = Memory.open(home, settings=settings, clock=FixedClock(now), embedder=loading)
        for belief in beliefs:
            self._add(belief)
        for user in dict.fromkeys(belief["user_id"] for belief in beliefs):
            self.memory.warm_up(view_of(user, ()))

    def __enter__(self) -> "Seeded":
        return self

    def __exit__(self, *_exc: object) -> None:
        self.memory.close()

    def slots(self, case: Case) -> Slots:
        """What the memory gives for a case."""
        view = view_of(case.user, case.scopes)
        listed = self.memory.items(view, Filter(), limit=EVERYTHING)[::-1]
        persona = [item for item in listed if is_persona(item)]
        questions = [item for item in listed if is_question(item)]
        pinned = [i for i in listed if i.pinned and i not in persona and i not in questions]
        others = {item.id for item in (*persona, *questions, *pinned)}
        most = case.budget["maxBeliefs"]
        found = self.memory.relevant(view, case.question, limit=most + len(others)) if most else None
        relevant = [hit.item for hit in found.hits if hit.item.id not in others] if found else []
        shown = pinned[:most]
        return Slots(
            _ids(shown),
            _ids(relevant[: most - len(shown)]),
            _ids([item for item in questions if item.pinned][: case.budget["maxQuestions"]]),
            "\n".join(item.text for item in persona),
        )

    def after(self, case: Case) -> None:
        """Remember what a turn of a session brought."""
        if case.create is not None:
            self._add(case.create)
            self._beliefs[case.create["_id"]] = dict(case.create)
        if case.update is not None and case.update.get("addAliases"):
            self._add({**self._beliefs[case.update["beliefId"]], "aliases": case.update["addAliases"]}, case.id)

    def _add(self, belief: Mapping[str, Any], source: str | None = None) -> None:
        view = view_of(belief["user_id"], belief["scope"][:1])
        draft = draft_of(belief, self._now)
        outcome = self.memory.add_many(view, [replace(draft, source=source or draft.source)])[0]
        if not outcome.stored:
            raise Defect(f"the belief {belief['_id']} was refused: {outcome.reason} ({outcome.detail})")


def view_of(user: str, scopes: Iterable[str]) -> View:
    """The view of a user in scopes of the benchmark."""
    space = f"user:{user}"
    return View(user, (space,), space, tuple(_scope(scope) for scope in scopes), Channel.IMPORT)


def draft_of(belief: Mapping[str, Any], now: datetime) -> Draft:
    """A belief as it is offered to the memory."""
    name = belief["canonical_name"]
    ended = _moment(belief.get("resolved_at"))
    if ended is None and belief["epistemic_status"] == "superseded":
        ended = _moment(belief.get("updated_at")) or now
    scope = _scope(belief["scope"][0])
    return Draft(
        belief["content"],
        Layer.PREFERENCE if scope == GLOBAL else Layer.EPISODIC,
        confidence=belief["confidence"],
        tags=(QUESTION_TAG,) if belief["type"] == "open_question" else (),
        aliases=tuple(dict.fromkeys((name, name.replace("_", " "), *belief["aliases"]))),
        pinned=bool(belief["pinned"]),
        source=belief["_id"],
        epistemic=_EPISTEMIC.get(belief["epistemic_status"], Epistemic.UNKNOWN),
        valid_from=micros(_moment(belief.get("created_at")) or now),
        valid_to=micros(min(ended, now - timedelta(seconds=1))) if ended else None,
        scope=scope,
    )


def is_persona(item: Item) -> bool:
    """Whether an item describes the user everywhere."""
    return item.scope == GLOBAL and item.layer == Layer.PREFERENCE


def is_question(item: Item) -> bool:
    """Whether an item is an open question."""
    return QUESTION_TAG in item.tags


def _scope(text: str) -> Scope:
    return GLOBAL if text == UNIVERSAL else Scope(ScopeKind.WORKSPACE, text.partition(":")[2])


def _ids(items: Iterable[Item]) -> list[str]:
    return [item.source for item in items]


def _moment(text: str | None) -> datetime | None:
    return datetime.fromisoformat(text).astimezone(UTC) if text else None


def _newest(beliefs: Iterable[Mapping[str, Any]]) -> datetime:
    moments = (_moment(belief.get(name)) for belief in beliefs for name in _DATES)
    return max((moment for moment in moments if moment), default=datetime(2026, 1, 1, tzinfo=UTC))


# -- scoring -------------------------------------------------------------------------------------------------------


class Scored:
    """Adds up cases."""

    def __init__(self, beliefs: Mapping[str, Mapping[str, Any]]) -> None:
        self._beliefs = dict(beliefs)
        self._all, self._linked = Figure(), Figure()
        self._groups: dict[str, Figure] = {}
        self._failures: list[dict[str, Any]] = []
        self._failed = 0

    def add(self, case: Case, slots: Slots) -> None:
        """Score one case."""
        expected = expected_of(case, {i for i, b in self._beliefs.items() if b["pinned"] and b["user_id"] == USER})
        self._all.add(expected, slots.relevant)
        self._linked.add(expected, [*slots.relevant, *self._participants(case, slots)])
        self._groups.setdefault(case.category, Figure()).add(expected, slots.relevant)
        if case.create is not None:
            self._beliefs[case.create["_id"]] = case.create
        broken = list(checks(case, slots))
        self._failed += bool(broken)
        if broken or expected != set(slots.relevant):
            self._failures.append(
                {
                    "case": case.id,
                    "expected": sorted(expected),
                    "returned": slots.relevant,
                    "broken": broken,
                }
            )

    def figures(self) -> dict[str, Any]:
        """The report's figures."""
        return {
            "n": self._all.n,
            "precision": _mean(self._all.precision),
            "recall": _mean(self._all.recall),
            "slot_precision": _mean(self._all.slots),
            "passed": self._all.n - self._failed,
            "with_participants": self._linked.means(),
            "by_category": {name: figure.means() for name, figure in sorted(self._groups.items())},
            "failures": self._failures,
        }

    def _participants(self, case: Case, slots: Slots) -> list[str]:
        linked = (i for one in slots.relevant for i in self._beliefs.get(one, {}).get("participants", ()))
        shown = {*slots.pinned, *slots.relevant}
        visible = (i for i in dict.fromkeys(linked) if i not in shown and i in self._beliefs)
        return [
            i
            for i in visible
            if self._beliefs[i]["user_id"] == case.user and set(self._beliefs[i]["scope"]) & set(case.scopes)
        ]


def expected_of(case: Case, pinned: set[str]) -> set[str]:
    """The ids that the relevant slot should hold."""
    wanted = case.expect.get("relevantBeliefs") or {}
    if "shouldOnlyInclude" in wanted:
        return set(wanted["shouldOnlyInclude"])
    return set(wanted.get("mustInclude", ())) - pinned


def checks(case: Case, slots: Slots) -> Iterable[str]:
    """Each check of a case that does not hold, as `slot: what id`."""
    wanted = case.expect.get("relevantBeliefs") or {}
    both = {*slots.pinned, *slots.relevant}
    yield from _members("relevant", both, wanted)
    if "shouldOnlyInclude" in wanted:
        only = set(wanted["shouldOnlyInclude"])
        yield from (f"relevant: unexpected {i}" for i in slots.relevant if i not in only)
        yield from (f"relevant: missing {i}" for i in sorted(only - set(slots.relevant)))
    noise = (case.expect.get("noiseCheck") or {}).get("mustNotSurface", ())
    yield from (f"relevant: noise {i}" for i in noise if i in both)
    yield from _members("pinned", set(slots.pinned), case.expect.get("pinnedFacts") or {})
    yield from _members("questions", set(slots.questions), case.expect.get("openQuestions") or {})
    yield from _order_and_size(slots.relevant, wanted)
    yield from _persona(slots.persona, case.expect.get("personaPrelude") or {})


def _members(slot: str, held: set[str], wanted: Mapping[str, Any]) -> Iterable[str]:
    for name in ("mustInclude", "shouldInclude"):
        yield from (f"{slot}: missing {i}" for i in wanted.get(name, ()) if i not in held)
    yield from (f"{slot}: forbidden {i}" for i in wanted.get("mustExclude", ()) if i in held)


def _order_and_size(relevant: Sequence[str], wanted: Mapping[str, Any]) -> Iterable[str]:
    if len(relevant) > wanted.get("maxCount", len(relevant)):
        yield f"relevant: more than {wanted['maxCount']}"
    if len(relevant) < wanted.get("minCount", 0):
        yield f"relevant: fewer than {wanted['minCount']}"
    for one, other in wanted.get("orderedBefore", ()):
        if not (one in relevant and other in relevant and relevant.index(one) < relevant.index(other)):
            yield f"relevant: {one} not before {other}"


def _persona(text: str, wanted: Mapping[str, Any]) -> Iterable[str]:
    if wanted.get("nonEmpty") and not text:
        yield "persona: empty"
    if wanted.get("isNull") and text:
        yield "persona: not empty"
    yield from (f"persona: without {part!r}" for part in wanted.get("contains", ()) if part not in text)
    yield from (f"persona: with {part!r}" for part in wanted.get("mustNotContain", ()) if part in text)


def _mean(values: Sequence[float]) -> float:
    return round(sum(values) / len(values), 4) if values else 1.0
