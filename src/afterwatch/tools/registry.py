"""What a tool is, and the one way to call it: check the size, check the arguments, run it. Knows no transport."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from afterwatch.errors import UserError
from afterwatch.memory.names import quoted
from afterwatch.settings.paths import ensure_home

if TYPE_CHECKING:
    from afterwatch.memory.api import Memory
    from afterwatch.memory.model import View

MAX_ARGUMENTS = 65_536
"""Characters of a call's arguments as JSON; the longest text that memory takes has 2,000."""
_NAMED = 3
"""Mistakes that an error names; more would not help."""


class Arguments(BaseModel):
    """What a tool takes: nothing that is not named, no type but the one named."""

    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)


class Answer(BaseModel):
    """What a tool gives: fields for programs, and `text` for those that read."""

    model_config = ConfigDict(extra="forbid")
    degraded: list[str] = Field(default_factory=list)

    def text(self) -> str:
        """The same in a few lines."""
        return "\n".join([*self.lines(), *(f"degraded: {flag}" for flag in self.degraded)])

    def lines(self) -> list[str]:
        """The lines that say what was found or done."""
        raise NotImplementedError


@dataclass(frozen=True)
class Desk:
    """Where a tool works: the memory, and the view that the front door gave. No argument changes either."""

    memory: "Memory"
    view: "View"


@dataclass(frozen=True)
class Tool:
    """One thing that an agent may call.

    `writes`: it changes what is remembered. `removes`: it takes something out of prompts; hosts ask before it.
    """

    name: str
    description: str
    takes: type[Arguments]
    gives: type[Answer]
    run: Callable[[Desk, Any], Answer]
    writes: bool = False
    removes: bool = False

    def call(self, desk: Desk, arguments: Mapping[str, Any] | None) -> Answer:
        """Run the tool with arguments as they came in.

        Raises:
            UserError: the arguments are too long, unknown or of a wrong type. Otherwise what memory raises.
        """
        size = len(json.dumps(arguments or {}, ensure_ascii=False, default=str))
        if size > MAX_ARGUMENTS:
            raise UserError(
                f"the arguments have {size} characters, more than {MAX_ARGUMENTS}",
                remedy="give one short statement a call",
                code="too_large",
            )
        try:
            given = self.takes.model_validate(dict(arguments or {}))
        except ValidationError as error:
            raise self._wrong(error) from None
        if self.writes:
            ensure_home()
        return self.run(desk, given)

    def schema(self) -> dict[str, Any]:
        """The JSON schema of the arguments."""
        found: dict[str, Any] = published(self.takes.model_json_schema())
        return found

    def answer_schema(self) -> dict[str, Any]:
        """The JSON schema of the answer; what is empty is left out of it."""
        found: dict[str, Any] = published(self.gives.model_json_schema())
        return found

    def _wrong(self, error: ValidationError) -> UserError:
        mistakes = error.errors(include_url=False, include_context=False, include_input=False)
        said = [_mistake(mistake) for mistake in mistakes[:_NAMED]]
        if len(mistakes) > _NAMED:
            said.append(f"and {len(mistakes) - _NAMED} more")
        known = ", ".join(self.takes.model_fields) or "none"
        return UserError("; ".join(said), remedy=f"the arguments of {self.name} are: {known}", code="bad_arguments")


def published(schema: Any) -> Any:
    """A schema in its short form: no titles that repeat names, no null for what may be left out.

    Every host puts it before its model, and some take no `anyOf`. Null is accepted all the same.
    """
    if isinstance(schema, list):
        return [published(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    kept = {key: published(part) for key, part in schema.items() if not (key == "title" and isinstance(part, str))}
    if schema.get("type") == "object":
        kept.pop("description", None)  # the docstring of a model is for us
    choices = [part for part in kept.get("anyOf", ()) if part != {"type": "null"}]
    if len(choices) == 1:
        del kept["anyOf"]
        kept = {**choices[0], **{key: part for key, part in kept.items() if (key, part) != ("default", None)}}
    return kept


def _mistake(mistake: Any) -> str:
    """A mistake in words; it never holds the value that was given."""
    place = ".".join(map(str, mistake["loc"])) or "arguments"
    if mistake["type"] == "extra_forbidden":
        return f"unknown argument {quoted(place)}"
    return f"{place}: {mistake['msg'][:1].lower()}{mistake['msg'][1:]}"
