"""The memory tools: one model for what each takes, one function for what it does. The view decides the authority."""

from typing import Annotated, Any, Literal

from pydantic import Field

from afterwatch.errors import ToolRefused, UserError
from afterwatch.memory.model import GLOBAL, Draft, Item, Layer, Outcome, Result, Scope
from afterwatch.memory.names import quoted
from afterwatch.memory.reading import Filter
from afterwatch.tools.answers import (
    MAX_ANSWER,
    Budget,
    Context,
    Forgotten,
    Gone,
    Items,
    Lessons,
    Single,
    Written,
    remembered,
    written,
)
from afterwatch.tools.quoting import NOTICE, instant
from afterwatch.tools.registry import Arguments, Desk, Tool

ALL = 100_000
"""More lessons than a space holds (`memory.cap`)."""
NEXT = {
    "user_holds": "the user said otherwise and only the user changes that: ask the user",
    "reserved_prefix": "choose another prefix",
    "low_confidence": "ask the user to say it at a terminal",
    "category": "record corrections with learn_add",
    "key_prefix": "begin the key with pref., project. or user.",
    "text_length": "make it one statement of 10 to 2000 characters",
    "older": "give a later valid_from, or none",
    "same_time": "give a valid_from that says which value is the later one",
}
"""The next step of an agent for each reason of a refusal."""

Short = Annotated[str, Field(min_length=1, max_length=200)]
Text = Annotated[str, Field(min_length=1, max_length=2000)]
Ids = Annotated[list[Short], Field(min_length=1, max_length=20, description="ids such as mem-2026-01-31-001")]
Place = Annotated[str | None, Field(max_length=300, description="global, or a scope of this server; default its first")]
Quote = Annotated[str | None, Field(max_length=2000, description="the user's own words that say so")]
Source = Annotated[str | None, Field(max_length=200, description="where it comes from, such as a ticket")]
Layers = Literal["semantic", "episodic", "lesson", "preference", "project", "history"]
Date = Annotated[str | None, Field(max_length=40)]


# -- lessons -------------------------------------------------------------------------------------------------------


class LearnAdd(Arguments):
    """What `learn_add` takes."""

    rule: Annotated[Text, Field(description="what to do from now on, as one statement")]
    category: Literal["tool", "preference", "knowledge"]
    negative: Annotated[str | None, Field(max_length=2000, description="what not to do")] = None
    quote: Quote = None
    source: Source = None
    scope: Place = None


def learn_add(desk: Desk, given: LearnAdd) -> Written:
    """Remember a correction."""
    draft = Draft(
        given.rule,
        Layer.LESSON,
        category=given.category,
        negative=given.negative,
        quote=given.quote,
        source=given.source or "",
        scope=_scope(desk, given.scope),
    )
    return _written(desk, draft)


class LearnList(Arguments):
    """What `learn_list` takes."""

    limit: Annotated[int, Field(ge=1, le=50)] = 20
    offset: Annotated[int, Field(ge=0, le=ALL)] = 0


def learn_list(desk: Desk, given: LearnList) -> Lessons:
    """List lessons in use, the confirmed ones first."""
    found = desk.memory.items(desk.view, Filter(layers=(Layer.LESSON,)), limit=ALL)
    warm = sorted((one for one in found if one.tier != "cold"), key=lambda one: one.epistemic != "confirmed")
    confirmed = sum(one.epistemic == "confirmed" for one in warm)
    budget = Budget()
    shown = budget.take(remembered(one) for one in warm[given.offset : given.offset + given.limit])
    return Lessons(
        items=shown,
        confirmed=confirmed,
        suggested=len(warm) - confirmed,
        offset=given.offset,
        omitted=budget.omitted,
    )


class LearnRemove(Arguments):
    """What `learn_remove` takes."""

    ids: Ids


def learn_remove(desk: Desk, given: LearnRemove) -> Forgotten:
    """Take lessons out of prompts."""
    for item_id in given.ids:
        if desk.memory.get(desk.view, item_id).layer != Layer.LESSON:
            raise UserError(f"{quoted(item_id)} is no lesson", remedy="memory_forget takes any item")
    return _forgotten(desk, given.ids)


# -- items ---------------------------------------------------------------------------------------------------------


class MemoryAdd(Arguments):
    """What `memory_add` takes."""

    text: Annotated[Text | None, Field(description="one statement; with a key it may be left out")] = None
    key: Annotated[Short | None, Field(description="sets the current value of a key such as pref.editor")] = None
    value: Annotated[Text | None, Field(description="the value of the key")] = None
    layer: Annotated[Literal["episodic", "preference", "project", "history"], Field(description="without a key")] = (
        "episodic"
    )
    importance: Annotated[float, Field(ge=0, le=1)] = 0.5
    tags: Annotated[list[Short], Field(max_length=10, default_factory=list)]
    aliases: Annotated[list[Short], Field(max_length=20, description="other names for it", default_factory=list)]
    quote: Quote = None
    source: Source = None
    valid_from: Annotated[Date, Field(description="since when it holds, ISO date or time")] = None
    valid_to: Annotated[Date, Field(description="until when it holds")] = None
    scope: Place = None


def memory_add(desk: Desk, given: MemoryAdd) -> Written:
    """Remember a statement, or the value of a key."""
    if given.key is None and given.value is not None:
        raise UserError("a value needs its key", remedy="give a key such as pref.editor, or a text alone")
    if given.key is None and given.text is None:
        raise UserError("there is nothing to remember", remedy="give a text, or a key and its value")
    keyed = given.key is not None
    value = given.value if given.value is not None or not keyed else given.text
    draft = Draft(
        "" if keyed and given.value is None else given.text or "",
        Layer.SEMANTIC if keyed else Layer(given.layer),
        subject=given.key,
        value=value,
        importance=given.importance,
        tags=given.tags,
        aliases=given.aliases,
        quote=given.quote,
        source=given.source or "",
        valid_from=instant(given.valid_from),
        valid_to=instant(given.valid_to, end=True),
        scope=_scope(desk, given.scope),
    )
    return _written(desk, draft)


class MemorySearch(Arguments):
    """What `memory_search` takes."""

    question: Annotated[Text, Field(description="a question, or some words")]
    limit: Annotated[int, Field(ge=1, le=50)] = 8
    layers: Annotated[list[Layers], Field(max_length=6, default_factory=list)]
    tags: Annotated[list[Short], Field(max_length=10, description="any of these", default_factory=list)]
    as_of: Annotated[Date, Field(description="what was true then, ISO date or time")] = None
    known_at: Annotated[Date, Field(description="what was remembered then")] = None


def memory_search(desk: Desk, given: MemorySearch) -> Items:
    """Find items by words and meaning."""
    where = Filter(
        layers=tuple(given.layers),
        tags=tuple(given.tags),
        valid_at=instant(given.as_of, end=True),
        known_at=instant(given.known_at, end=True),
    )
    found = desk.memory.search(desk.view, given.question, limit=given.limit, where=where)
    budget = Budget()
    items = budget.take(remembered(hit.item, score=hit.score) for hit in found.hits)
    return Items(items=items, omitted=budget.omitted, degraded=list(found.degraded))


class MemoryGet(Arguments):
    """What `memory_get` takes."""

    id: Annotated[Short, Field(description="an id, or a key such as pref.editor")]


def memory_get(desk: Desk, given: MemoryGet) -> Single:
    """One item with all that is known of it."""
    chain = desk.memory.history(desk.view, given.id)
    named = [one for one in chain if one.id == given.id] or [one for one in chain if one.status == "active"]
    item = (named or chain)[-1]
    budget = Budget()
    first = budget.take([remembered(item, longest=MAX_ANSWER // 4, quote=True)])
    newest = budget.take(remembered(one) for one in reversed(chain) if one.row != item.row)
    return Single(item=first[0], history=newest[::-1], omitted=budget.omitted)


class MemoryForget(Arguments):
    """What `memory_forget` takes."""

    ids: Ids


def memory_forget(desk: Desk, given: MemoryForget) -> Forgotten:
    """Take items out of prompts; of the user's own items only request it."""
    return _forgotten(desk, given.ids)


class MemoryContext(Arguments):
    """What `memory_context` takes."""

    question: Annotated[Text, Field(description="what the user asks, or what you are about to do")]
    limit: Annotated[int, Field(ge=1, le=20)] = 6


def memory_context(desk: Desk, given: MemoryContext) -> Context:
    """What bears on a question, ready for a prompt."""
    return _context(desk, given.question, given.limit)


# -- the steps -----------------------------------------------------------------------------------------------------


def _withdraw(desk: Desk, ids: list[str]) -> tuple[list[Outcome], str]:
    """Take items out of use, as far as an agent may; and what that means. The one place that decides how."""
    outcomes = desk.memory.cool(desk.view, ids)
    return outcomes, "forgotten items enter no prompt; they are kept, and the user can bring them back"


def _context(desk: Desk, question: str, limit: int) -> Context:
    """The block of quotations for a question. The one place that decides how it is put together."""
    found = desk.memory.relevant(desk.view, question, limit=limit)
    items = Budget().take(remembered(hit.item) for hit in found.hits)
    lines = [line for item in items for line in item.lines()]
    block = "\n".join([f"[Memory] {NOTICE}", *lines]) if lines else ""
    return Context(context=block, ids=[item.id for item in items], degraded=list(found.degraded))


def _written(desk: Desk, draft: Draft) -> Written:
    outcome = desk.memory.add_many(desk.view, [draft])[0]
    if not outcome.stored:
        about = f" ({outcome.id})" if outcome.id else ""
        step = NEXT.get(outcome.reason, "change what you send as the message says")
        raise ToolRefused(f"refused: {outcome.detail}{about}", remedy=step, code=outcome.reason)
    return written(outcome, confirmed=_confirmed(desk, outcome), space=desk.view.write)


def _confirmed(desk: Desk, outcome: Outcome) -> bool:
    if outcome.id is None or outcome.result is Result.QUARANTINED:
        return False
    return _seen(desk, outcome.id).epistemic == "confirmed"


def _seen(desk: Desk, item_id: str) -> Item:
    return desk.memory.get(desk.view, item_id)


def _forgotten(desk: Desk, ids: list[str]) -> Forgotten:
    outcomes, meaning = _withdraw(desk, ids)
    return Forgotten(outcomes=[_gone(outcome) for outcome in outcomes], meaning=meaning)


def _gone(outcome: Outcome) -> Gone:
    if outcome.stored:
        word: Any = "unchanged" if outcome.result is Result.UNCHANGED else "forgotten"
        return Gone(id=str(outcome.id), result=word)
    return Gone(id=str(outcome.id), result="requested", detail=outcome.detail)


def _scope(desk: Desk, text: str | None) -> Scope | None:
    """The scope that was asked for, if the view may write there; None for the view's own."""
    if text is None:
        return None
    scope, mine = Scope.parse(text), (GLOBAL, *desk.view.scopes)
    if scope not in mine:
        known = ", ".join(str(one) for one in dict.fromkeys(mine))
        raise ToolRefused(f"scope {quoted(text)} is outside this server", remedy=f"use one of: {known}", code="scope")
    return scope


TOOLS: tuple[Tool, ...] = (
    Tool(
        "learn_add",
        "Record a correction by the user as a lesson: call it when the user corrects you or says to remember a rule. "
        "It counts as a suggestion until the user confirms it.",
        LearnAdd,
        Written,
        learn_add,
        writes=True,
    ),
    Tool("learn_list", "List the lessons in use, those the user confirmed first.", LearnList, Lessons, learn_list),
    Tool(
        "learn_remove",
        "Take lessons out of prompts by their ids. A lesson of the user's own is only requested to go.",
        LearnRemove,
        Forgotten,
        learn_remove,
        writes=True,
        removes=True,
    ),
    Tool(
        "memory_add",
        "Remember one statement, or with a key (pref., project. or user.) its current value, which supersedes the "
        "former one. No secrets: they are masked. What the user said only the user changes.",
        MemoryAdd,
        Written,
        memory_add,
        writes=True,
    ),
    Tool(
        "memory_search",
        "Find what is remembered, by words and by meaning, with id, date, origin and source of each item.",
        MemorySearch,
        Items,
        memory_search,
    ),
    Tool("memory_get", "Show one item, or a key with all its values.", MemoryGet, Single, memory_get),
    Tool(
        "memory_forget",
        "Take items out of prompts by their ids; nothing is deleted. One of the user's own is only requested to go.",
        MemoryForget,
        Forgotten,
        memory_forget,
        writes=True,
        removes=True,
    ),
    Tool(
        "memory_context",
        "Ask what bears on a question before you answer it: what passes the gate, quoted and cited. Often nothing.",
        MemoryContext,
        Context,
        memory_context,
    ),
)
"""Every tool, in the order in which hosts show them."""
BY_NAME = {tool.name: tool for tool in TOOLS}
