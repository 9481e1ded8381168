"""Law: nothing is stored, and no error says, what the redactor would have changed; names that hold it are refused."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from afterwatch.errors import AfterwatchError
from afterwatch.memory import Draft, Layer, Memory, Scope, ScopeKind, View
from afterwatch.memory.reading import as_dict
from afterwatch.security.redaction import redact
from tests.memory.support import AGENT, USER, events_of, everything, keywords_only

SECRET = "gh" + "p_" + "az4by7cx1dw9" * 3
"""Made up, and in lower case, as keys and spaces are."""
HIDDEN = "hunter2" + "secretxyz"
"""A secret only beside a telling name."""


def stored_bytes(home: Path) -> bytes:
    return b"".join(path.read_bytes() for path in sorted(home.rglob("*")) if path.is_file())


FIELDS: dict[str, Callable[[str], dict[str, Any]]] = {
    "quote": lambda secret: {"quote": f"he said {secret}"},
    "tag": lambda secret: {"tags": [secret.upper(), "a" * 45 + secret]},
    "alias": lambda secret: {"aliases": [secret, "b" * 90 + " " + secret]},
    "source": lambda secret: {"source": f"log {secret}"},
    "long source": lambda secret: {"source": "s" * 190 + " " + secret},
    "source run": lambda secret: {"source_run": secret},
    "conversation": lambda secret: {"conversation": f"chat {secret}", "position": 1},
    "inspired by": lambda secret: {"inspired_by": secret},
    "negative": lambda secret: {"negative": f"paste {secret}", "layer": Layer.LESSON, "category": "tool"},
}


@pytest.mark.parametrize("name", FIELDS)
def test_every_field_is_masked(home: Path, name: str) -> None:
    with keywords_only(home) as memory:
        outcome = memory.add(USER, "The zebra crossing is closed", **FIELDS[name](SECRET))
        assert outcome.stored
        assert "masked" in outcome.detail
        item = memory.get(USER, outcome.id or "")
        assert redact(str(as_dict(item))).findings == ()
    assert SECRET.encode() not in stored_bytes(home).lower()


VALUES: list[Any] = [
    HIDDEN,
    {"db_password": HIDDEN},
    {"hosts": [{"password": HIDDEN, "port": 1}]},
    [{"api_key": HIDDEN}],
]


@pytest.mark.parametrize("value", VALUES, ids=str)
def test_a_value_beside_a_telling_name_is_masked_at_any_depth(home: Path, value: Any) -> None:
    with keywords_only(home) as memory:
        key = "user.db_password" if isinstance(value, str) else "user.database"
        outcome = memory.remember(USER, key, value)
        assert "masked" in outcome.detail
        assert "port" in str(memory.get(USER, outcome.id or "").value) or "port" not in str(value)
        assert memory.remember(USER, "user.pin_code.password", 12345678).detail
        assert memory.remember(USER, "pref.retries", 12345678).detail == ""
    data = stored_bytes(home)
    assert HIDDEN.encode() not in data


def test_a_text_that_tells_of_its_value_masks_both(home: Path) -> None:
    with keywords_only(home) as memory:
        outcome = memory.remember(USER, "user.login", HIDDEN, text=f"password: {HIDDEN}")
        assert outcome.stored
        assert memory.get(USER, outcome.id or "").value == "[REDACTED: credential]"
    assert HIDDEN.encode() not in stored_bytes(home)


REFUSED: dict[str, tuple[Draft, View]] = {
    "key": (Draft(subject=f"pref.{SECRET}", value="x"), AGENT),
    "scope": (Draft("The zebra crossing is closed", scope=Scope(ScopeKind.PROJECT, SECRET)), AGENT),
    "scope of the view": (Draft("The zebra crossing is closed"), View(scopes=(Scope(ScopeKind.PROJECT, SECRET),))),
    "hidden scope": (
        Draft("The zebra crossing is closed", scope=Scope(ScopeKind.PROJECT, "\u200b".join(SECRET))),
        AGENT,
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_name_that_holds_a_secret_is_refused(home: Path, name: str) -> None:
    draft, view = REFUSED[name]
    with keywords_only(home) as memory:
        outcome = memory.add_many(view, [draft])[0]
        assert outcome.reason == "secret_name"
        assert "credential" in outcome.detail
        assert SECRET not in str(outcome)
        assert everything(memory) == {}
        assert events_of(memory) == {"refused": 1}
    assert SECRET.encode() not in stored_bytes(home)


def test_a_space_or_a_principal_that_holds_a_secret_writes_nothing(home: Path) -> None:
    space = f"user:{SECRET}"
    for view in (View(read=(space,), write=space), View(principal=SECRET)):
        with keywords_only(home) as memory, pytest.raises(AfterwatchError) as caught:
            memory.add(view, "The zebra crossing is closed")
        assert caught.value.code == "secret_name"
        assert SECRET not in f"{caught.value} {caught.value.remedy}"
        assert not home.exists()
    with keywords_only(home) as memory:
        item = memory.add(AGENT, "The zebra crossing is closed").id or ""
        with pytest.raises(AfterwatchError):
            memory.cool(View(principal=SECRET), [item])


ERRORS: list[Callable[[Memory], object]] = [
    lambda memory: memory.get(AGENT, SECRET),
    lambda memory: memory.history(AGENT, SECRET),
    lambda memory: memory.history(AGENT, f"mem-{SECRET}"),
    lambda memory: memory.cool(AGENT, [SECRET]),
    lambda memory: memory.confirm(AGENT, SECRET),
    lambda memory: memory.rate(AGENT, memory.items(AGENT)[0].id, SECRET),
    lambda _: Scope.parse(SECRET),
    lambda _: Scope.parse(f"global:{SECRET}"),
    lambda _: View(write=f"nowhere:{SECRET}"),
]


@pytest.mark.parametrize("at", range(len(ERRORS)))
def test_errors_do_not_quote_secrets(home: Path, at: int) -> None:
    with keywords_only(home) as memory:
        memory.add(AGENT, "The zebra crossing is closed")
        with pytest.raises(AfterwatchError) as caught:
            ERRORS[at](memory)
    said = f"{caught.value} {caught.value.remedy}"
    assert redact(said).findings == ()
    assert SECRET not in said


def test_refusals_do_not_quote_what_was_said(home: Path) -> None:
    drafts = [
        Draft(SECRET[:9]),
        Draft("A lesson of no kind", Layer.LESSON, category=SECRET),
        Draft("An epistemic word is closed", epistemic=SECRET),
        Draft("A layer is one of a few", SECRET),  # type: ignore[arg-type]
        Draft(subject=f"{SECRET}.x", value="x"),
        Draft(subject="pref.x", value="vim", text=f"It is emacs, {SECRET}"),
    ]
    with keywords_only(home) as memory:
        for outcome in memory.add_many(AGENT, drafts):
            assert not outcome.stored
            assert SECRET[:9] not in str(outcome)
