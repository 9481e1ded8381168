"""Masking credentials in text. Linear in the length of the text, whatever the text is.

All rules look at the same text; what they found is merged and replaced by markers. What is left between the
markers is looked at again, so that a second `redact` has nothing to do.
"""

import base64
import binascii
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import Any
from urllib.parse import unquote_to_bytes

from afterwatch.security.redaction_rules import Rule, load_rules

CREDENTIAL = b"[REDACTED: credential]"
ENCODED = b"[REDACTED: encoded credential]"
ROUNDS = 6  # how often a gap between markers is looked at again before it is masked whole
DEPTH = 2  # how many layers of base64 are opened
SHORTEST = 5  # bytes; nothing shorter than `pwd=x` can hold a credential
SHORTEST_TOKEN = 15  # bytes; no credential of known form is shorter
WEAK_LENGTH = 6  # `secret=` or `token=` with a shorter value is a name, not a secret


@dataclass(frozen=True)
class Finding:
    """How often one kind of credential was masked."""

    kind: str
    count: int


@dataclass(frozen=True)
class Redacted:
    """The text without its credentials, and what was masked, by kind."""

    text: str
    findings: tuple[Finding, ...]


@dataclass(frozen=True, order=True)
class Span:
    """A stretch of bytes to mask; of overlapping spans the marker of the first one is kept."""

    start: int
    end: int
    kind: str
    marker: bytes = CREDENTIAL


def redact(text: str) -> Redacted:
    """Return `text` with credentials replaced by `[REDACTED: …]` markers.

    Accepts any str, lone surrogates included, and raises nothing. `redact(redact(x).text)` changes nothing.
    """
    data = text.encode("utf-8", "surrogatepass")
    if not _gate().search(data):
        return Redacted(text, ())
    active = _active(data)
    counts: Counter[str] = Counter()
    parts: list[bytes] = []
    at = 0
    for found in _compile(load_rules().marker).finditer(data):
        parts += _settle(data[at : found.start()], active, counts)
        parts.append(found.group())
        at = found.end()
    parts += _settle(data[at:], active, counts)
    if not counts:
        return Redacted(text, ())
    masked = b"".join(parts).decode("utf-8", "surrogatepass")
    return Redacted(masked, tuple(Finding(kind, counts[kind]) for kind in sorted(counts)))


def redact_argv(argv: Sequence[str]) -> tuple[str, ...]:
    """Return the words of a command with credentials masked, also where flag and value are two words."""
    clean: list[str] = []
    for index, word in enumerate(argv):
        masked = redact(word).text
        before = argv[index - 1] if index else ""
        pair = redact(f"{before} {word}") if before.startswith("-") else None
        if pair and masked == word and any(finding.kind == "flag" for finding in pair.findings):
            masked = CREDENTIAL.decode()
        clean.append(masked)
    return tuple(clean)


def _settle(piece: bytes, active: tuple[Rule, ...], counts: Counter[str], depth: int = 0) -> list[bytes]:
    """Return `piece` as stretches of text and markers, looked at until nothing is left to mask."""
    if len(piece) < SHORTEST:
        return [piece]
    spans = _merge(_scan(piece, active))
    if not spans:
        return [piece]
    counts.update(span.kind for span in spans)
    if depth == ROUNDS:
        # Text built so that each masking uncovers another credential: stay linear, mask the rest.
        return [CREDENTIAL]
    parts: list[bytes] = []
    at = 0
    for span in spans:
        parts += _settle(piece[at : span.start], active, counts, depth + 1)
        parts.append(span.marker)
        at = span.end
    return parts + _settle(piece[at:], active, counts, depth + 1)


def _merge(spans: list[Span]) -> list[Span]:
    merged: list[Span] = []
    for span in sorted(spans):
        last = merged[-1] if merged else None
        if last is None or span.start > last.end:
            merged.append(span)
        elif span.end > last.end or (span.start == last.start and len(span.marker) > len(last.marker)):
            widest = max(last, span, key=lambda one: one.end - one.start)
            merged[-1] = Span(last.start, max(last.end, span.end), widest.kind, widest.marker)
    return merged


def _active(data: bytes) -> tuple[Rule, ...]:
    """The rules that can match anywhere in `data`: pieces of it need not try the others."""
    rules = load_rules()
    lowered = data.lower()
    return tuple(rule for rule in rules.formats + rules.context if _hinted(rule, lowered))


def _scan(piece: bytes, active: tuple[Rule, ...], depth: int = 0) -> list[Span]:
    """Return every stretch of `piece` that holds a credential, in no order; they may overlap."""
    rules = load_rules()
    lowered = piece.lower()
    spans = _private_keys(piece) if b"private key" in lowered or b"putty-" in lowered else []
    for rule in active:
        if _hinted(rule, lowered):
            spans += _matches(rule, piece)
    if _hinted(rules.key_value, lowered):
        spans += _key_values(piece)
    if len(piece) >= 40:
        spans += _encoded(piece, depth)
    if b"://" in lowered and depth == 0:
        from afterwatch.security.redaction_urls import judge_urls

        holds = partial(_holds_token, formats=tuple(rule for rule in active if rule in rules.formats))
        verdict = judge_urls(piece, _compile(rules.url).finditer(piece), holds)
        spans = [span for span in spans if not verdict.spares(span.start, span.end)]
        spans += [Span(start, end, "suspicious_url", marker) for start, end, marker in verdict.suspicious]
    return spans


def _holds_token(data: bytes, formats: tuple[Rule, ...]) -> bool:
    """Whether the rest of a URL holds a credential of known form, percent-encoded or not."""
    if len(data) < SHORTEST_TOKEN:
        return False
    rules = load_rules()
    if b"%" in data:
        data, formats = unquote_to_bytes(data), rules.formats
    lowered = data.lower()
    if any(_hinted(rule, lowered) and any(True for _ in _matches(rule, data)) for rule in formats):
        return True
    if b"AAAA" not in data and b"PRIVATE" not in data:
        return False
    return any(_compile(one).search(data) for one in (rules.private_key_begin, rules.ssh_public_key))


@cache
def _compile(pattern: str) -> Any:
    import re2  # type: ignore[import-untyped]

    options = re2.Options()
    # Bytes, not characters: a lone surrogate is no valid UTF-8, and a secret beside one must still be seen.
    options.encoding = re2.Options.Encoding.LATIN1
    options.max_mem = 64 << 20
    options.log_errors = False
    return re2.compile(pattern.encode("ascii"), options)


@cache
def _gate() -> Any:
    """One pattern without whose match no rule can match: most texts end here."""
    rules = load_rules()
    hints = {hint for rule in (*rules.formats, *rules.context, rules.key_value) for hint in rule.hints}
    words = [re.escape(hint.decode("utf-8")).encode("utf-8") for hint in sorted(hints)]
    escaped = "".join(f"\\x{byte:02x}" if byte > 127 else chr(byte) for byte in b"|".join(words))
    return _compile(f"(?i){escaped}|private key|putty-|://|[a-z0-9+/_-]{{40}}")


def _hinted(rule: Rule, lowered: bytes) -> bool:
    return any(hint in lowered for hint in rule.hints)


def _matches(rule: Rule, piece: bytes) -> Iterator[Span]:
    check = CHECKS[rule.check]
    pattern = _compile(rule.pattern)
    groups = range(pattern.groups, -1, -1)
    for found in pattern.finditer(piece):
        group = next(group for group in groups if found.start(group) >= 0)
        start, end = _trimmed(piece, found.start(group), found.end(group))
        if start < end and check(piece[start:end]):
            yield Span(start, end, rule.kind)


def _trimmed(piece: bytes, start: int, end: int) -> tuple[int, int]:
    """Leave punctuation that closes the sentence or the list outside the mask."""
    return start, start + len(piece[start:end].rstrip(b",;.)]}"))


def _private_keys(piece: bytes) -> list[Span]:
    rules = load_rules()
    begin, end = _compile(rules.private_key_begin), _compile(rules.private_key_end)
    spans: list[Span] = []
    at = 0
    while found := begin.search(piece, at):
        close = end.search(piece, found.end())
        at = close.end() if close else len(piece)  # END is missing: the rest may be its body
        spans.append(Span(found.start(), at, "private_key"))
    return spans


def _key_values(piece: bytes) -> Iterator[Span]:
    rules = load_rules()
    for found in _compile(rules.key_value.pattern).finditer(piece):
        group = next(group for group in range(3, 9) if found.start(group) >= 0)
        start, end = found.start(group), found.end(group)
        if group == 7:
            block = _block_end(piece, found.start(), end)
            if block > end:
                yield Span(end, block, "key_value")
            continue
        if group == 8:
            start, end = _bare_value(piece, start, end)
        weak = found.group(1).lower().decode("latin-1") in rules.weak_keys
        value = piece[start:end]
        if value and not _is_name(value, weak, quoted=group != 8, colon=found.group(2) == b":"):
            yield Span(start, end, "key_value")


_NEXT_KEY = re.compile(rb"[,;&|]\s*[\w.-]+[=:]")


def _bare_value(piece: bytes, start: int, end: int) -> tuple[int, int]:
    """An unquoted value ends where the next `key=` of the same line begins."""
    following = _NEXT_KEY.search(piece, start, end)
    return _trimmed(piece, start, following.start() if following else end)


def _block_end(piece: bytes, key: int, start: int) -> int:
    """Return the end of a YAML block whose first line begins at `start`: all lines deeper than the key's."""
    line = piece.rfind(b"\n", 0, key) + 1
    indent = len(piece[line:key]) - len(piece[line:key].lstrip(b" "))
    at = start
    while at < len(piece):
        stop = piece.find(b"\n", at)
        stop = len(piece) if stop < 0 else stop
        text = piece[at:stop]
        if text.strip() and len(text) - len(text.lstrip(b" ")) <= indent:
            break
        at = stop + 1
    return max(start, at - 1)  # the line break before the next key stays


# References to a secret kept elsewhere, and stand-ins of examples. Whole values only: `$ecret` is a password.
_PLACEHOLDER = re.compile(
    rb"\$[{(]|\$[A-Z_][A-Z0-9_]*$|\$[0-9@*]$|\{\{|<[^>]*>?$|%[({]|%[A-Z_]+%|(?:\*+|x+|X+|\.+|-+|_+|\?+)$"
    rb"|!(?:vault|secret|env|[A-Z][A-Za-z:]+)$|/run/secrets/|(?:file|env|vault|secretref):"
)
_CALL = re.compile(rb"[A-Za-z_][\w.]*[(\[](?:.*[)\]])?[,;]?$")
_ATTRIBUTE = re.compile(rb"[a-z_]+(?:\.[a-z_]+)+$")
_PLAIN_NAME = re.compile(rb"[a-z]+(?:[-_./][a-z]+[0-9]{0,2})*$")
_PATH = re.compile(rb"(?:/[\w.@+-]*)+$")


def _is_name(value: bytes, weak: bool, *, quoted: bool, colon: bool) -> bool:
    """Whether a value beside a credential's name is no credential: a reference, a word, a number, a name."""
    if value.lower() in load_rules().not_values or _PLACEHOLDER.match(value):
        return True
    if not quoted and (_CALL.match(value) or _PATH.match(value)):
        return True
    if not weak:
        return False
    if len(value) < WEAK_LENGTH or value.isdigit() or _ATTRIBUTE.match(value):
        return True
    return bool(_PLAIN_NAME.match(value)) and (colon or b"-" in value or b"/" in value)


def _encoded(piece: bytes, depth: int) -> Iterator[Span]:
    if depth >= DEPTH:
        return
    for found in _compile(load_rules().encoded).finditer(piece):
        start, end = found.start(), found.end()
        if piece[end : end + 1] not in _LINE_ENDS and b"\n" in piece[start:end]:
            end = piece.rfind(b"\n", start, end)  # the last line is no base64: `key: value` begins there
        packed = b"".join(piece[start:end].split()).rstrip(b"=").translate(_URL_SAFE)
        if any(_gate().search(plain) and _scan(plain, _active(plain), depth + 1) for plain in _decodings(packed)):
            yield Span(start, end, "encoded", ENCODED)


_LINE_ENDS = (b"", b"\r", b"\n", b'"', b"'")
_URL_SAFE = bytes.maketrans(b"-_", b"+/")


def _decodings(packed: bytes) -> Iterator[bytes]:
    """The bytes behind base64 at each of the four alignments: letters before it may have joined it."""
    for offset in range(4):
        usable = packed[offset : offset + (len(packed) - offset) // 4 * 4]
        rest = packed[offset + len(usable) :]
        if len(rest) > 1:
            usable += rest + b"=" * (4 - len(rest))
        try:
            yield base64.b64decode(usable)
        except binascii.Error:
            continue


def _opaque(value: bytes) -> bool:
    """A credential after `Bearer`; a word of prose is none."""
    return len(value) >= 16 or any(48 <= byte <= 57 for byte in value)


def _mixed(value: bytes) -> bool:
    return any(48 <= byte <= 57 for byte in value) and any(65 <= byte <= 90 for byte in value)


def _password(value: bytes) -> bool:
    return value.lower() not in load_rules().not_values and not _PLACEHOLDER.match(value)


_ODD = re.compile(rb"[0-9!#$%^&*+=~@]")


def _stated(value: bytes) -> bool:
    """`the password is X`: X is a secret if no ordinary word or count looks like it."""
    bare = value.rstrip(b"!?:")
    return _password(value) and len(bare) >= 4 and bool(_ODD.search(bare)) and not bare.isdigit()


CHECKS: dict[str, Callable[[bytes], bool]] = {
    "": lambda value: True,
    "opaque": _opaque,
    "mixed": _mixed,
    "password": _password,
    "stated": _stated,
}
