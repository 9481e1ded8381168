"""What may enter: format, allow-list, confidence and size. Pure functions over one draft.

Everything that is to be remembered is tidied and redacted here, before it is compared, embedded or stored.
"""

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from afterwatch.memory.model import USER, Draft, Epistemic, Kind, Layer
from afterwatch.memory.names import telling, tidy
from afterwatch.memory.settings import MemorySettings
from afterwatch.memory.texts import says
from afterwatch.security.redaction import redact

KEY = re.compile(r"[a-z](?:[a-z0-9_.]*[a-z0-9])?")
MAX_KEY = 100
BUILTIN_PREFIXES = ("pref", "project", "user")
RESERVED_PREFIX = "system"
MAX_VALUE_BYTES = 4096
TEXT_LENGTH = (10, 2000)
MAX_IMPORTED = 20_000
MAX_TAGS, MAX_TAG, MAX_ALIASES, MAX_ALIAS, MAX_SOURCE = 10, 50, 20, 100, 200
EARLIEST, LATEST = -62_100_000_000_000_000, 253_300_000_000_000_000
"""Microseconds since the epoch, a little inside the years 1 and 9999."""
MASK = "[REDACTED: credential]"
LABELS = f"at most {MAX_TAGS} tags of {MAX_TAG} characters and {MAX_ALIASES} aliases of {MAX_ALIAS}"
CATEGORIES = ("tool", "preference", "knowledge")


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a draft stays outside; `code` is stable, `detail` is for people and never holds the draft's text."""

    code: str
    detail: str


BACKWARDS = Refusal("validity", "what is valid ends after it begins")


class Checked(NamedTuple):
    """A draft as it may be stored; how many secrets were masked in it, and how many labels left out or cut."""

    draft: Draft
    masked: int
    cut: int


def check(draft: Draft, origin: str, settings: MemorySettings) -> Checked | Refusal:
    """The draft as it may be stored and what was masked and cut in it, or the reason against it."""
    if not _is_json(draft.value):
        return Refusal("value_type", "a value is text, a number, true or false, or lists and mappings of these")
    if draft.layer not in tuple(Layer):
        return Refusal("layer", f"a layer is one of {', '.join(Layer)}")
    found = _cleaned(replace(draft, layer=Layer(draft.layer)))
    for rule in (_times, _key, _size, _agreement, _lesson, _gate):
        refusal = rule(found.draft, origin, settings)
        if refusal is not None:
            return refusal
    return found


def kind_of(draft: Draft) -> Kind:
    """State has a subject; whatever has none is knowledge."""
    return Kind.STATE if draft.subject is not None else Kind.KNOWLEDGE


def canonical(value: Any) -> str:
    """The one JSON form of a value; equal values have equal forms."""
    return json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":"))


def _is_json(value: Any) -> bool:
    try:
        canonical(value)
    except (TypeError, ValueError, RecursionError):
        return False
    return True


class _Masker:
    """Tidies and redacts text, and counts what it masked and what it cut."""

    def __init__(self) -> None:
        self.masked = 0
        self.cut = 0

    def text(self, text: str) -> str:
        found = redact(tidy(text))
        self.masked += sum(finding.count for finding in found.findings)
        return found.text

    def optional(self, text: str | None) -> str | None:
        return (self.text(text) or None) if text else None

    def value(self, value: Any, name: str = "") -> Any:
        """A value without its secrets; `name` is what it stands beside, which may tell that it is one."""
        if isinstance(value, list | tuple):
            return [self.value(part, name) for part in value]
        if isinstance(value, dict):
            return {self.text(str(key)): self.value(part, str(key)) for key, part in value.items()}
        if value is None or isinstance(value, bool):
            return value
        masked = self.text(value) if isinstance(value, str) else value
        if name and value not in ("", 0) and _telling(name, str(masked)):
            self.masked += 1
            return MASK
        return masked

    def short(self, text: str, longest: int) -> str:
        """A text of at most so many characters, that is safe at any length."""
        kept = self.text(text)[:longest]
        return MASK[:longest] if telling(kept) else kept

    def labels(self, texts: Iterable[str], longest: int, most: int) -> tuple[str, ...]:
        """Distinct labels; those that are too long are cut, those that are too many left out."""
        safe = [self.text(text) for text in texts]
        self.cut += sum(len(text) > longest for text in safe)
        kept = tuple(dict.fromkeys(self.short(text, longest) for text in safe if text))
        self.cut += len(kept[most:])
        return kept[:most]


def _cleaned(draft: Draft) -> Checked:
    safe = _Masker()
    value, text = _said(draft, safe)
    cleaned = replace(
        draft,
        text=text,
        value=value,
        subject=draft.subject.strip() if draft.subject is not None else None,
        layer=Layer.SEMANTIC if draft.subject is not None else draft.layer,
        quote=safe.optional(draft.quote),
        negative=safe.optional(draft.negative),
        source=safe.short(draft.source, MAX_SOURCE),
        source_run=safe.optional(draft.source_run),
        conversation=safe.optional(draft.conversation),
        inspired_by=safe.optional(draft.inspired_by),
        confidence=_within(draft.confidence, otherwise=0.0),
        importance=_within(draft.importance, otherwise=0.5),
        tags=safe.labels((safe.text(tag).lower() for tag in draft.tags), MAX_TAG, MAX_TAGS),
        aliases=safe.labels(draft.aliases, MAX_ALIAS, MAX_ALIASES),
    )
    return Checked(cleaned, safe.masked, safe.cut)


def _said(draft: Draft, safe: _Masker) -> tuple[Any, str]:
    """Value and text without their secrets, each made from the other if it is missing."""
    text = safe.text(draft.text)
    if draft.subject is None:
        return safe.value(draft.value), text
    last = draft.subject.rpartition(".")[2]
    given = draft.value if draft.value is not None else text
    plain = safe.text(given) if isinstance(given, str) else given
    value = safe.value(plain, last)
    if value == MASK != plain:
        return MASK, MASK
    if isinstance(value, str) and MASK in text and says(tidy(draft.text), value) and not says(text, value):
        return MASK, text  # the text told that the value is a secret
    return value, text or (value if isinstance(value, str) else canonical(value))


def _within(number: float, *, otherwise: float) -> float:
    """The number cut to 0 … 1; a NaN says nothing."""
    return min(max(number, 0.0), 1.0) if number == number else otherwise


def _telling(name: str, value: str) -> bool:
    """Whether a value is a secret because of the name it stands beside, such as `user.db_password`."""
    return telling(f"{name}: {value}") and not telling(value) and not telling(name)


def _key(draft: Draft, origin: str, settings: MemorySettings) -> Refusal | None:
    key = draft.subject
    if key is None:
        return None
    if telling(key):
        return Refusal("secret_name", "the key looks like a credential; name it by what it is for")
    if not KEY.fullmatch(key) or len(key) < 2 or len(key) > MAX_KEY or ".." in key:
        return Refusal("key_format", "a key is 2 to 100 of a-z 0-9 _ . and starts with a letter, e.g. pref.editor")
    prefix = key.partition(".")[0]
    allowed = (*BUILTIN_PREFIXES, *settings.extra_prefixes)
    if prefix not in allowed or "." not in key:
        return Refusal("key_prefix", f"keys start with {', '.join(f'{p}.' for p in allowed)} (memory.extra_prefixes)")
    if prefix == RESERVED_PREFIX and origin != USER:
        return Refusal("reserved_prefix", "keys of system. are written by the user only")
    return None


def _times(draft: Draft, _origin: str, _settings: MemorySettings) -> Refusal | None:
    given = [at for at in (draft.valid_from, draft.valid_to) if at is not None]
    if any(not EARLIEST <= at <= LATEST for at in given):
        return Refusal("validity", "a time lies between the years 1 and 9999")
    if len(given) == 2 and given[1] <= given[0]:
        return BACKWARDS
    return None


def _size(draft: Draft, _origin: str, _settings: MemorySettings) -> Refusal | None:
    if kind_of(draft) is Kind.STATE:
        if not draft.text or draft.value in ("", [], {}):
            return Refusal("value_empty", "a key needs a value")
        if len(canonical(draft.value).encode()) > MAX_VALUE_BYTES or len(draft.text.encode()) > MAX_VALUE_BYTES:
            return Refusal("value_size", f"a value is at most {MAX_VALUE_BYTES} bytes of JSON")
        return None
    least, most = (1, MAX_IMPORTED) if draft.imported else TEXT_LENGTH
    if not least <= len(draft.text) <= most:
        return Refusal("text_length", f"a text has {least} to {most} characters, this one {len(draft.text)}")
    return None


def _agreement(draft: Draft, _origin: str, _settings: MemorySettings) -> Refusal | None:
    """A text beside a value must say it: search shows the text, and a prompt the value.

    Lists, mappings, true and false have no one wording: beside them the text is a caption.
    """
    if draft.subject is None or not isinstance(draft.value, str | int | float) or isinstance(draft.value, bool):
        return None
    wording = draft.value if isinstance(draft.value, str) else canonical(draft.value)
    if draft.text == wording or says(draft.text, wording):
        return None
    return Refusal("text_value", "the text does not say the value: write the value in it, or give only one of the two")


def _lesson(draft: Draft, _origin: str, _settings: MemorySettings) -> Refusal | None:
    if len(draft.quote or "") > TEXT_LENGTH[1]:
        return Refusal("text_length", f"a quote has at most {TEXT_LENGTH[1]} characters")
    if draft.layer is not Layer.LESSON:
        return (
            None if draft.category is None and draft.negative is None else Refusal("category", "only lessons have one")
        )
    if draft.category not in CATEGORIES:
        return Refusal("category", f"a lesson's category is one of {', '.join(CATEGORIES)}")
    if draft.negative is not None and len(draft.negative) > TEXT_LENGTH[1]:
        return Refusal("text_length", f"the negative form has at most {TEXT_LENGTH[1]} characters")
    return None


def _gate(draft: Draft, origin: str, settings: MemorySettings) -> Refusal | None:
    if draft.epistemic is not None and draft.epistemic not in tuple(Epistemic):
        return Refusal("epistemic", f"the epistemic status is one of {', '.join(Epistemic)}")
    guarded = kind_of(draft) is Kind.STATE or draft.layer is Layer.LESSON
    if guarded and origin != USER and not draft.confidence >= settings.confidence:
        return Refusal("low_confidence", f"confidence {draft.confidence:g} is below {settings.confidence:g}")
    return None
