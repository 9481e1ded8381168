"""URLs that carry data out: judged by what they carry, not by where they lead."""

import re
import sys
from bisect import bisect_right
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote_to_bytes

from afterwatch.security.redaction_rules import load_rules

LONG_QUERY = 200  # characters
LONG_BASE64 = 40  # characters in a query
LONG_SEGMENT = 64  # characters in a path: identifiers of documents have up to 44
LONG_PERCENT = 20  # percent-encoded bytes in a row
MAX_EXPIRES = 604_800  # seconds; S3 signs for seven days at most

_QUERY_RUN = re.compile(rb"[A-Za-z0-9+/_=-]{%d,}" % LONG_BASE64)
_PATH_RUN = re.compile(rb"[A-Za-z0-9+_=]{%d,}" % LONG_SEGMENT)
_PERCENT_RUN = re.compile(rb"(?:%%[0-9A-Fa-f]{2}){%d,}" % LONG_PERCENT)
_HEX = re.compile(rb"[0-9a-fA-F-]+")
_DOMAIN = re.compile(r"[a-z0-9.:-]{1,80}")


@dataclass
class Verdict:
    """What a text's URLs are: to be masked (start, end, marker), or spared from the other rules."""

    suspicious: list[tuple[int, int, bytes]] = field(default_factory=list)
    spared: list[tuple[int, int]] = field(default_factory=list)

    def spares(self, start: int, end: int) -> bool:
        """Whether a stretch lies within a URL that is left alone."""
        at = bisect_right(self.spared, (start, sys.maxsize)) - 1
        return at >= 0 and end <= self.spared[at][1]


def judge_urls(piece: bytes, found: Iterable[Any], holds_token: Callable[[bytes], bool]) -> Verdict:
    """Judge each URL matched in `piece`; `holds_token` tells whether path and query hold a credential."""
    verdict = Verdict()
    for match in found:
        url = match.group().rstrip(b".,;:!?)]}")
        end = match.start() + len(url)
        authority, path, query = _split(url)
        if _is_presigned(url, authority, path, query):
            verdict.spared.append((match.start(), end))
        elif _carries_data(path, query) or holds_token(path + b"?" + query):
            verdict.suspicious.append((match.start(), end, _marker(authority)))
    return verdict


def _split(url: bytes) -> tuple[bytes, bytes, bytes]:
    """Return (authority, path, query with fragment)."""
    rest = url.split(b"://", 1)[1]
    cut = re.search(rb"[/?#]", rest)
    authority, tail = (rest[: cut.start()], rest[cut.start() :]) if cut else (rest, b"")
    at = re.search(rb"[?#]", tail)
    return (authority, tail[: at.start()], tail[at.start() + 1 :]) if at else (authority, tail, b"")


def _carries_data(path: bytes, query: bytes) -> bool:
    if len(query) >= LONG_QUERY or any(_is_foreign(run) for run in _PERCENT_RUN.findall(path + b"?" + query)):
        return True
    runs = _QUERY_RUN.findall(query) + _PATH_RUN.findall(path)
    return any(_is_base64(run) for run in runs)


def _is_base64(run: bytes) -> bool:
    # A digest or a name of words is none: those are what engineers paste all day.
    if _HEX.fullmatch(run):
        return False
    return all(re.search(kind, run) for kind in (rb"[a-z]", rb"[A-Z]", rb"[0-9]"))


def _is_foreign(run: bytes) -> bool:
    """Whether percent-encoded bytes are anything but words in another script."""
    try:
        text = unquote_to_bytes(run).decode("utf-8")
    except UnicodeDecodeError:
        return True
    return any(letter.isascii() for letter in text)


def _marker(authority: bytes) -> bytes:
    domain = authority.rsplit(b"@", 1)[-1].decode("latin-1").lower()
    # The name itself may be the payload, one label of it.
    if not _DOMAIN.fullmatch(domain) or max(map(len, domain.split("."))) >= LONG_BASE64:
        domain = "unknown-host"
    return f"[REDACTED: suspicious URL to {domain}]".encode("ascii")


def _is_presigned(url: bytes, authority: bytes, path: bytes, query: bytes) -> bool:
    """Whether this is a signed link into S3 and nothing else: known host and parameters, each well formed."""
    rules = load_rules()
    host = authority.decode("latin-1").lower()
    if not url.lower().startswith(b"https://") or not re.fullmatch(rules.presigned_host, host):
        return False
    pairs = [pair.partition("=")[::2] for pair in query.decode("latin-1").split("&")]
    given = dict(pairs)
    needed = rules.presigned_query.keys() - rules.presigned_optional
    if len(given) != len(pairs) or not needed <= given.keys() <= rules.presigned_query.keys():
        return False
    shaped = all(re.fullmatch(rules.presigned_query[name], value) for name, value in pairs)
    return shaped and int(given["X-Amz-Expires"]) <= MAX_EXPIRES and not _carries_data(path, b"")
