"""The credential table of `redaction_rules.toml`, read once, at the first redaction."""

import tomllib
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any


@dataclass(frozen=True)
class Rule:
    """One kind of credential. `hints` are lower-case bytes without which the pattern cannot match."""

    kind: str
    hints: tuple[bytes, ...]
    pattern: str
    check: str = ""


@dataclass(frozen=True)
class Rules:
    """The whole table; see the comments of the TOML file."""

    formats: tuple[Rule, ...]
    context: tuple[Rule, ...]
    key_value: Rule
    weak_keys: frozenset[str]
    not_values: frozenset[bytes]
    private_key_begin: str
    private_key_end: str
    ssh_public_key: str
    url: str
    encoded: str
    marker: str
    presigned_host: str
    presigned_query: dict[str, str]
    presigned_optional: frozenset[str]


@cache
def load_rules() -> Rules:
    """Return the table of this installation."""
    source = resources.files("afterwatch.security").joinpath("redaction_rules.toml")
    table = tomllib.loads(source.read_text(encoding="utf-8"))
    presigned = table["presigned"]
    return Rules(
        formats=tuple(_rule(entry) for entry in table["format"]),
        context=tuple(_rule(entry) for entry in table["context"]),
        key_value=_rule(table["key_value"]),
        weak_keys=frozenset(table["words"]["weak_keys"]),
        not_values=frozenset(table["words"]["not_values"].encode("utf-8").split()),
        presigned_host=presigned["host"],
        presigned_query=presigned["query"],
        presigned_optional=frozenset(presigned["optional"]),
        **{name: _joined(pattern) for name, pattern in table["patterns"].items()},
    )


def _rule(entry: dict[str, Any]) -> Rule:
    hints = tuple(hint.encode("utf-8") for hint in entry["hints"])
    return Rule(entry["kind"], hints, _joined(entry["pattern"]), entry.get("check", ""))


def _joined(pattern: str | list[str]) -> str:
    return pattern if isinstance(pattern, str) else "".join(pattern)
