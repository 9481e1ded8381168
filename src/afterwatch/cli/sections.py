"""Every settings section of the program, by name: the one place where rooms' settings meet."""

import re
from collections.abc import Mapping
from typing import Any

from afterwatch.errors import UserError
from afterwatch.memory.embedders import EMBEDDERS
from afterwatch.memory.model import Scope, check_space
from afterwatch.memory.settings import MemorySettings
from afterwatch.settings.config import Config
from afterwatch.settings.fields import Rule

SECTIONS: Mapping[str, type] = {"memory": MemorySettings}
_PREFIX = re.compile("[a-z][a-z0-9_]{0,97}")
"""What may stand before the first dot of a key, see `memory.intake.KEY`."""


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


RULES: Mapping[str, Rule] = {
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
