"""Where an item says it comes from: the speaker's own word, which must not pass for the mark of a channel."""

import re
import unicodedata
from dataclasses import replace

from afterwatch.memory.model import USER, Channel, Draft, View

_MARK = re.compile(r"\W*(\w+)[:\u2236\ua789\u02d0\u05c3]")
"""The first word, if a colon or what looks like one follows it."""
_TAKEN = frozenset([*(channel.value for channel in Channel), "user", USER])


def vouched(draft: Draft, view: View) -> Draft:
    """The draft; off the user's authority a source such as `tty:ines` stands behind the channel that gave it."""
    if view.is_user or draft.source == f"{view.channel}:{view.principal}" or not _looks_taken(draft.source):
        return draft
    return replace(draft, source=f"{view.channel}:{draft.source.strip()}")


def _looks_taken(source: str) -> bool:
    """Whether a source begins with the name of a channel, whatever is written between its letters."""
    plain = "".join(
        letter for letter in unicodedata.normalize("NFKC", source) if unicodedata.category(letter)[0] not in "CZ"
    )
    found = _MARK.match(plain.casefold())
    return found is not None and found[1] in _TAKEN
