"""Text as typed: tidied, judged as a name, quoted by an error.

Keys, scope keys, spaces and principals are stored as they are, so one that holds a credential is refused. The
redactor is loaded only when asked: reading needs the standard library alone.
"""

import unicodedata

_KEPT_CONTROLS = "\n\r\t\u200c\u200d"
"""Line ends, tabs, and the joiners that scripts and emoji need."""


def tidy(text: str) -> str:
    """NFC, without lone surrogates, control, format and private-use characters, trimmed."""
    if text.isascii() and text.isprintable():
        return text.strip()
    composed = unicodedata.normalize("NFC", text)
    kept = (c for c in composed if c in _KEPT_CONTROLS or unicodedata.category(c) not in ("Cc", "Cf", "Co", "Cs"))
    return "".join(kept).replace("\r\n", "\n").strip()


def telling(name: str) -> bool:
    """Whether a name holds what looks like a credential: the redactor would change it."""
    from afterwatch.security.redaction import redact

    return bool(redact(tidy(name)).findings)


def quoted(typed: object) -> str:
    """What was typed, as an error may quote it: redacted, at most 200 characters, in quotation marks."""
    from afterwatch.security.redaction import redact

    masked = redact(tidy(str(typed))).text
    return repr(masked if len(masked) <= 200 else f"{masked[:200]}…")
