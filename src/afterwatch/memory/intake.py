"""What may enter: format, allow-list, confidence and size. Pure functions over one draft.

Everything that is to be remembered is tidied and redacted here, before it is compared, embedded or stored.
"""

import json
import re
import unicodedata
from dataclasses import dataclass, replace
from typing import Any

from afterwatch.memory.model import USER, Draft, Epistemic, Kind, Layer
from afterwatch.memory.settings import MemorySettings
from afterwatch.security.redaction import redact

KEY = re.compile(r"[a-z](?:[a-z0-9_.]*[a-z0-9])?")
MAX_KEY = 100
BUILTIN_PREFIXES = ("pref", "project", "user")
RESERVED_PREFIX = "system"
MAX_VALUE_BYTES = 4096
TEXT_LENGTH = (10, 2000)
MAX_IMPORTED = 20_000
MAX_TAGS, MAX_TAG, MAX_ALIASES, MAX_ALIAS = 10, 50, 20, 100
EARLIEST, LATEST = -62_100_000_000_000_000, 253_300_000_000_000_000
"""Microseconds since the epoch, a little inside the years 1 and 9999."""
MASK = "[REDACTED: credential]"
CATEGORIES = ("tool", "preference", "knowledge")
_KEPT_CONTROLS = "\n\r\t\u200c\u200d"
"""Line ends, tabs, and the joiners that scripts and emoji need."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a draft stays outside; `code` is stable, `detail` is for people and never holds the draft's text."""

    code: str
    detail: str


def tidy(text: str) -> str:
    """NFC, without lone surrogates, control, format and private-use characters, trimmed."""
    if text.isascii() and text.isprintable():
        return text.strip()
    composed = unicodedata.normalize("NFC", text)
    kept = (c for c in composed if c in _KEPT_CONTROLS or unicodedata.category(c) not in ("Cc", "Cf", "Co", "Cs"))
    return "".join(kept).replace("\r\n", "\n").strip()


def check(draft: Draft, origin: str, settings: MemorySettings) -> tuple[Draft, int] | Refusal:
    """The draft as it may be stored and the number of secrets masked in it, or the reason against it."""
    if not _is_json(draft.value):
        return Refusal("value_type", "a value is text, a number, true or false, or lists and mappings of these")
    if draft.layer not in tuple(Layer):
        return Refusal("layer", f"a layer is one of {', '.join(Layer)}")
    cleaned, masked = _cleaned(replace(draft, layer=Layer(draft.layer)))
    for rule in (_times, _key, _size, _lesson, _gate):
        refusal = rule(cleaned, origin, settings)
        if refusal is not None:
            return refusal
    return cleaned, masked


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
    """Tidies and redacts text, and counts what it masked."""

    def __init__(self) -> None:
        self.masked = 0

    def text(self, text: str) -> str:
        found = redact(tidy(text))
        self.masked += sum(finding.count for finding in found.findings)
        return found.text

    def optional(self, text: str | None) -> str | None:
        return (self.text(text) or None) if text else None

    def value(self, value: Any) -> Any:
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, list | tuple):
            return [self.value(part) for part in value]
        if isinstance(value, dict):
            return {self.text(str(name)): self.value(part) for name, part in value.items()}
        return value


def _cleaned(draft: Draft) -> tuple[Draft, int]:
    safe = _Masker()
    value = safe.value(draft.value)
    text = safe.text(draft.text)
    if draft.subject is not None:
        value = text if value is None else value
        text = text or (value if isinstance(value, str) else canonical(value))
        if isinstance(value, str) and value and _telling(draft.subject, value):
            text = value = MASK
            safe.masked += 1
    cleaned = replace(
        draft,
        text=text,
        value=value,
        subject=draft.subject.strip() if draft.subject is not None else None,
        layer=Layer.SEMANTIC if draft.subject is not None else draft.layer,
        quote=safe.optional(draft.quote),
        negative=safe.optional(draft.negative),
        source=safe.text(draft.source)[:200],
        source_run=safe.optional(draft.source_run),
        conversation=safe.optional(draft.conversation),
        inspired_by=safe.optional(draft.inspired_by),
        confidence=_within(draft.confidence, otherwise=0.0),
        importance=_within(draft.importance, otherwise=0.5),
        tags=_distinct((safe.text(tag).lower() for tag in draft.tags), MAX_TAG, MAX_TAGS),
        aliases=_distinct((safe.text(alias) for alias in draft.aliases), MAX_ALIAS, MAX_ALIASES),
    )
    return cleaned, safe.masked


def _within(number: float, *, otherwise: float) -> float:
    """The number cut to 0 … 1; a NaN says nothing."""
    return min(max(number, 0.0), 1.0) if number == number else otherwise


def _telling(subject: str, value: str) -> bool:
    """Whether a value is a secret because of the name it stands beside, such as `user.db_password`."""
    return bool(redact(f"{subject.rpartition('.')[2]}: {value}").findings) and not redact(value).findings


def _distinct(texts: Any, longest: int, most: int) -> tuple[str, ...]:
    return tuple(dict.fromkeys(text[:longest] for text in texts if text))[:most]


def _key(draft: Draft, origin: str, settings: MemorySettings) -> Refusal | None:
    key = draft.subject
    if key is None:
        return None
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
        return Refusal("validity", "what is valid ends after it begins")
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
