"""Law: what may enter is decided by closed rules; each refusal has a code, leaves an event, and holds no text."""

from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from afterwatch.memory import Draft, Layer, Memory, Outcome
from afterwatch.memory.intake import Refusal, check
from afterwatch.memory.model import AGENT as BY_AGENT
from afterwatch.memory.model import ORIGINS
from afterwatch.memory.model import USER as BY_USER
from afterwatch.memory.settings import MemorySettings
from tests.memory.support import AGENT, DAY, USER, connect, events_of, everything, keywords_only

SETTINGS = MemorySettings()


def judged(draft: Draft, origin: str = BY_AGENT, settings: MemorySettings = SETTINGS) -> str:
    """The code of the refusal, or nothing."""
    found = check(draft, origin, settings)
    return found.code if isinstance(found, Refusal) else ""


def lesson(**more: Any) -> Draft:
    return Draft("Drain nodes before a reboot", Layer.LESSON, **{"category": "tool", **more})


def state(subject: str, value: Any = "vim", **more: Any) -> Draft:
    return Draft(subject=subject, value=value, **more)


EMPTY: list[Any] = ["", "  ", "\u202e", [], {}, None]
VALUES: list[Any] = [0, False, 0.5, [0], {"a": None}, "0"]
TABLE: list[tuple[Draft, str]] = [
    (Draft("a" * 9), "text_length"),
    (Draft("a" * 10), ""),
    (Draft("a" * 2000), ""),
    (Draft("a" * 2001), "text_length"),
    (Draft("  " + "a" * 9 + "  "), "text_length"),
    (Draft("\0\u202e" + "a" * 9), "text_length"),
    (Draft("猫" * 2000), ""),
    (Draft(""), "text_length"),
    (Draft("", imported=True), "text_length"),
    (Draft("a", imported=True), ""),
    (Draft("a" * 20_000, imported=True), ""),
    (Draft("a" * 20_001, imported=True), "text_length"),
    (state("pref.x", "a" * 4094), ""),  # with its quotes 4096 bytes of JSON
    (state("pref.x", "a" * 4095), "value_size"),
    (state("pref.x", "é" * 2047), ""),
    (state("pref.x", "é" * 2048), "value_size"),
    (state("pref.x", [1] * 2047, text="numbers"), ""),
    (state("pref.x", [1] * 2048, text="numbers"), "value_size"),
    (state("pref.x", "a", text="a " + "b" * 4094), ""),
    (state("pref.x", "a", text="a " + "b" * 4095), "value_size"),
    *((state("pref.x", value), "value_empty") for value in EMPTY),
    *((state("pref.x", value), "") for value in VALUES),
    *((state("pref.x", value), "value_type") for value in ({1, 2}, object(), b"bytes")),
    *((state(key), "") for key in ("pref.x", "pref.a.b_c9", "project.x", "user.x", "pref." + "a" * 95, " pref.x ")),
    *(
        (state(key), "key_format")
        for key in ("", "p", "Pref.x", "pref.X", "pref..x", ".pref", "pref.", "pref x", "pref-x", "9pref.x", "préf.x")
    ),
    *((state(key), "key_format") for key in ("pref." + "a" * 96, "_pref.x", "pref.x_", "pref.x\0y", "pref.x\ny")),
    *((state(key), "key_prefix") for key in ("pref", "prefx.y", "other.x", "system.x", "host.ip")),
    (state("pref.x", confidence=0.8), ""),
    (state("pref.x", confidence=0.79), "low_confidence"),
    (state("pref.x", confidence=0.7999999), "low_confidence"),
    (state("pref.x", confidence=float("nan")), "low_confidence"),
    (lesson(confidence=0.8), ""),
    (lesson(confidence=0.79), "low_confidence"),
    (Draft("Knowledge needs no confidence", confidence=0.0), ""),
    (Draft("Knowledge needs no confidence", confidence=float("nan")), ""),
    *((lesson(category=category), "") for category in ("tool", "preference", "knowledge")),
    *((lesson(category=category), "category") for category in (None, "", "Tool", "other")),
    (lesson(negative="n" * 2000), ""),
    (lesson(negative="n" * 2001), "text_length"),
    *((Draft("An epistemic word is closed", epistemic=word), "") for word in ("confirmed", "unknown", None)),
    (Draft("An epistemic word is closed", epistemic="sure"), "epistemic"),
]


@pytest.mark.parametrize(("draft", "code"), TABLE, ids=[str(at) for at in range(len(TABLE))])
def test_boundaries(draft: Draft, code: str) -> None:
    assert judged(draft) == code


AGREEING: list[tuple[Any, str]] = [
    ("vim", "Our editor is VIM."),
    ("Tuesdays at 10:00", "Routing is deployed on tuesdays at  10:00, by hand"),
    ("c++ (nightly)", "The compiler is c++ (nightly)"),
    ("猫", "我的宠物是猫"),
    ("vim", "编辑器是vim的"),
    (80, "It listens on port 80."),
    (0.5, "The ratio is 0.5"),
    (True, "The feature is switched on"),
    ([1, 2], "The ports of the shop"),
    ({"a": 1}, "The settings of the shop"),
]
DISAGREEING: list[tuple[Any, str]] = [
    ("vim", "Our editor is emacs"),
    ("vim", "Our editor is neovim"),
    ("Tuesdays at 10:00", "Routing is deployed on Tuesdays at 11:00"),
    ("猫", "我的宠物是狗"),
    (80, "It listens on port 8080."),
    (-5, "The offset is 5"),
    ("...", "Our editor is emacs"),
]


@pytest.mark.parametrize(("value", "text"), AGREEING)
def test_a_text_that_says_the_value_goes_in_with_it(home: Path, value: Any, text: str) -> None:
    with keywords_only(home) as memory:
        item = memory.get(AGENT, memory.remember(AGENT, "pref.x", value, text=text).id or "")
        assert (item.value, item.text) == (value, text)


@pytest.mark.parametrize(("value", "text"), DISAGREEING)
def test_a_text_that_says_another_value_is_refused(home: Path, value: Any, text: str) -> None:
    with keywords_only(home) as memory:
        outcome = memory.remember(USER, "pref.x", value, text=text)
        assert outcome.reason == "text_value"
        assert "only one of the two" in outcome.detail
        assert memory.remember(USER, "pref.x", value).stored
        assert memory.remember(USER, "pref.y", None, text=text).stored


def test_extra_and_reserved_prefixes() -> None:
    extra = MemorySettings(extra_prefixes=("host", "system"))
    assert judged(state("host.ip"), BY_AGENT, extra) == ""
    assert judged(state("hosts.ip"), BY_AGENT, extra) == "key_prefix"
    assert judged(state("system.motd"), BY_AGENT, extra) == "reserved_prefix"
    assert judged(state("system.motd"), BY_USER, extra) == ""


def test_the_user_needs_no_confidence_and_no_one_else_has_that() -> None:
    sure = MemorySettings(confidence=1.0)
    for origin in sorted(set(ORIGINS.values())):
        for draft in (state("pref.x", confidence=0.1), lesson(confidence=0.1)):
            assert judged(draft, origin) == ("" if origin == BY_USER else "low_confidence")
        assert judged(state("pref.x", confidence=0.99), origin, sure) == ("" if origin == BY_USER else "low_confidence")


def test_labels_are_normalised() -> None:
    draft = Draft(
        "A text with many labels",
        importance=7,
        tags=["  Red ", "red", "", "\0", "x" * 60, *(f"t{at}" for at in range(20))],
        aliases=["Alias", "Alias ", "alias", "y" * 120, *(f"a{at}" for at in range(30))],
        confidence=5,
        source="s" * 300,
    )
    found = check(draft, BY_AGENT, SETTINGS)
    assert not isinstance(found, Refusal)
    cleaned = found[0]
    assert cleaned.importance == cleaned.confidence == 1.0
    assert cleaned.tags == ("red", "x" * 50, *(f"t{at}" for at in range(8)))
    assert cleaned.aliases == ("Alias", "alias", "y" * 100, *(f"a{at}" for at in range(17)))
    assert cleaned.source == "s" * 200
    for given_, wanted in ((-1.0, 0.0), (0.3, 0.3), (float("nan"), 0.5), (float("inf"), 1.0)):
        again = check(Draft("A text with many labels", importance=given_), BY_AGENT, SETTINGS)
        assert not isinstance(again, Refusal)
        assert again[0].importance == wanted


@settings(max_examples=40)
@example(confidence=float("nan"), importance=float("nan"), user=False)
@given(confidence=st.floats(), importance=st.floats(), user=st.booleans())
def test_any_number_is_kept_as_a_share(
    confidence: float, importance: float, user: bool, tmp_path_factory: pytest.TempPathFactory
) -> None:
    with keywords_only(tmp_path_factory.mktemp("numbers")) as memory:
        view = USER if user else AGENT
        outcome = memory.add(view, "The zebra crossing is closed", confidence=confidence, importance=importance)
        item = memory.get(AGENT, outcome.id or "")
        assert 0 <= item.importance <= 1
        assert 0 <= item.confidence <= 1


# --- secrets ----------------------------------------------------------------------------------------


def secrets() -> list[str]:
    """Made up at run time, so that no scanner takes this file for a leak."""
    return ["gh" + "p_" + "aZ4bY7cX1dW9" * 3, "AK" + "IA" + "QWERTYUIOPASDFG2"]


def stored_bytes(home: Path) -> bytes:
    return b"".join(path.read_bytes() for path in sorted(home.rglob("*")) if path.is_file())


@pytest.mark.parametrize("secret", secrets(), ids=["token", "key id"])
def test_secrets_are_masked_before_anything_is_stored(home: Path, secret: str) -> None:
    with keywords_only(home) as memory:
        outcomes = memory.add_many(
            USER,
            [
                Draft(f"The deploy token is {secret} for the shop", quote=f"token {secret}", source=f"log {secret}"),
                Draft(f"Turn of a run with {secret} in its name", conversation=f"c {secret}", source_run=secret),
                Draft("Labels are no hiding place", tags=[secret], aliases=[f"token {secret}"], inspired_by=secret),
                Draft(subject="pref.token", value={secret: [secret, {"deep": secret}]}),
                Draft(f"Never paste {secret}", Layer.LESSON, category="tool", negative=f"paste {secret}"),
            ],
        )
        assert [outcome.stored for outcome in outcomes] == [True] * 5
        assert all("masked" in outcome.detail for outcome in outcomes)
        assert all("REDACTED" in str(item) for item in everything(memory).values())
        assert memory.add(USER, secret[:9]).reason == "text_length"
    data = stored_bytes(home).lower()
    assert secret[:9].lower().encode() not in data, "nor a part of it, nor what was refused"


def test_what_was_said_again_is_masked_before_it_is_compared(home: Path) -> None:
    one, other = ("gh" + "p_" + letters * 3 for letters in ("aZ4bY7cX1dW9", "mN3bV6cX8zL1"))
    with keywords_only(home) as memory:
        first = memory.add(AGENT, f"The deploy token is {one} for the shop")
        assert memory.add(AGENT, f"The deploy token is {other} for the shop").id == first.id


# --- events -----------------------------------------------------------------------------------------


def acts(memory: Memory) -> list[tuple[str, Callable[[], list[Outcome]]]]:
    """One act of each kind, with the event it must leave."""
    zebra = "The zebra crossing is closed on Mondays"

    def one(call: Callable[[], Outcome]) -> Callable[[], list[Outcome]]:
        return lambda: [call()]

    def first(subject: str) -> str:
        return memory.history(AGENT, subject)[-1].id

    return [
        ("add", one(lambda: memory.add(AGENT, zebra, source="mail"))),
        ("refused", one(lambda: memory.add(AGENT, "stripes"))),
        ("merge", one(lambda: memory.add(AGENT, zebra, source="phone"))),
        ("add", one(lambda: memory.remember(AGENT, "pref.editor", "quagga", valid_from=2))),
        ("corroborate", one(lambda: memory.remember(USER, "pref.editor", "quagga"))),
        ("refused", one(lambda: memory.remember(AGENT, "pref.editor", "okapi"))),
        ("add", one(lambda: memory.add(AGENT, "Our editor is quagga on all hosts"))),
        ("supersede", one(lambda: memory.remember(USER, "pref.editor", "okapi"))),
        ("cut", one(lambda: memory.remember(USER, "pref.editor", "quagga", valid_from=40_000 * DAY))),
        ("nominate", one(lambda: memory.add(AGENT, "The zebra crossing is closed on Sundays"))),
        ("keep", lambda: memory.keep(USER, ids=[i.id for i in everything(memory).values() if "hosts" in i.text])),
        ("confirm-request", one(lambda: memory.confirm(AGENT, first("pref.editor")))),
        ("confirm", one(lambda: memory.confirm(USER, memory.items(AGENT)[0].id))),
        ("cool-request", lambda: memory.cool(AGENT, [first("pref.editor")])),
        ("cool", lambda: memory.cool(USER, [first("pref.editor")])),
        ("warm-request", lambda: memory.warm(AGENT, [first("pref.editor")])),
        ("warm", lambda: memory.warm(USER, [first("pref.editor")])),
        ("add", one(lambda: memory.learn(USER, "Feed okapis leaves", category="knowledge", negative="feed grass"))),
        ("cool", lambda: memory.add_many(AGENT, [Draft(f"{at} okapis in the pen", imported=True) for at in range(9)])),
    ]


def test_every_change_leaves_an_event_without_text(home: Path) -> None:
    texts = "zebra quagga okapi crossing mondays sundays hosts stripes leaves grass editor mail phone pref".split()
    with keywords_only(home, cap=6) as memory:
        for code, act in acts(memory):
            before = events_of(memory)
            outcomes = act()
            assert outcomes
            assert all(outcome.event is not None for outcome in outcomes), code
            assert events_of(memory)[code] > before[code], code
    with closing(connect(home)) as connection:
        names = [row[1] for row in connection.execute("PRAGMA table_info(events)")]
        rows = connection.execute(f"SELECT {', '.join(names)} FROM events").fetchall()
        linked = connection.execute("SELECT count(*) FROM events WHERE item IS NULL AND code != 'refused'").fetchone()
    assert linked == (0,)
    said = " ".join(str(value) for row in rows for value in row).lower()
    assert [text for text in texts if text in said] == []


def test_a_value_beside_a_telling_name_is_masked(home: Path) -> None:
    word = "hunter2" + "secretxyz"
    with keywords_only(home) as memory:
        outcome = memory.remember(USER, "user.db_password", word)
        assert "masked" in outcome.detail
        assert memory.history(USER, "user.db_password")[0].value == "[REDACTED: credential]"
        assert memory.remember(USER, "pref.editor", "vim").detail == ""
