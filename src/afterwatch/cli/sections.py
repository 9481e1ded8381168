"""Every settings section of the program, by name: the one place where rooms' settings meet."""

import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from afterwatch.errors import UserError
from afterwatch.memory.embedders import EMBEDDERS
from afterwatch.memory.model import Scope, check_space
from afterwatch.memory.settings import MemorySettings
from afterwatch.net.settings import NetSettings
from afterwatch.settings.config import Config
from afterwatch.settings.fields import Rule

SECTIONS: Mapping[str, type] = {"memory": MemorySettings, "net": NetSettings}
_PREFIX = re.compile("[a-z][a-z0-9_]{0,97}")
"""What may stand before the first dot of a key, see `memory.intake.KEY`."""
_HOST = re.compile("[A-Za-z0-9_](?:[A-Za-z0-9_.-]{0,251}[A-Za-z0-9_])?")
_VARIABLE = re.compile("[A-Z_][A-Z0-9_]{0,79}")


def _is_space(name: Any) -> bool:
    try:
        check_space(name)
    except UserError:
        return False
    return True


def _is_scope(text: Any) -> bool:
    try:
        return not text or bool(Scope.parse(text))
    except UserError:
        return False


def _no_secret(text: str) -> bool:
    """Whether a text may stand in a settings file: what looks like a credential belongs elsewhere."""
    if not text:
        return True
    from afterwatch.security.redaction import redact

    return text.isprintable() and redact(text).text == text


def _is_url(text: Any) -> bool:
    if not text or not _no_secret(text):
        return not text
    try:
        parts = urlsplit(text)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and "@" not in parts.netloc
    except ValueError:
        return False


_URL = Rule("an address such as https://host/v1, without name or password, or empty", _is_url)
RULES: Mapping[str, Rule] = {
    "memory.endpoint_url": _URL,
    "memory.gguf_url": _URL,
    "memory.endpoint_key": Rule(
        "the name of an environment variable, such as OPENAI_API_KEY, never the key itself; or empty",
        lambda name: not name or (_VARIABLE.fullmatch(name) is not None and _no_secret(name)),
    ),
    "memory.endpoint_model": Rule("the name of a model, or empty", _no_secret),
    "memory.gguf_file": Rule("the path of a GGUF file, or empty", _no_secret),
    "net.private_hosts": Rule(
        "a list of host names, such as models.corp.example",
        lambda names: all(_HOST.fullmatch(name) and _no_secret(name) for name in names),
    ),
    "memory.space": Rule("local, user:<id>, agent:<id> or team:<slug>", _is_space),
    "memory.scope": Rule("global, or kind:key such as project:shop, or empty", _is_scope),
    "memory.embedder": Rule(f"one of none, {', '.join(EMBEDDERS)}", lambda name: name in ("none", *EMBEDDERS)),
    "memory.extra_prefixes": Rule(
        "a list of what may stand before the first dot of a key, such as deploy",
        lambda prefixes: all(_PREFIX.fullmatch(prefix) for prefix in prefixes),
    ),
}
"""What a value must be that has the right type: what cannot exist is refused where it is written."""


def load_config(flags: Mapping[str, object] | None = None) -> Config:
    """Return the settings of this run; `flags` maps `section.key` to what the command line gave."""
    return Config.load(SECTIONS, flags=flags, rules=RULES)
