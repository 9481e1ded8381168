"""Memory: items, store, admission, index, embedders, recall.

The names below load on first use; the read path (`reading`, `recall`) needs the standard library alone.
"""

from typing import TYPE_CHECKING, Any

from afterwatch.memory.model import (
    Channel,
    Draft,
    Item,
    Layer,
    Outcome,
    Result,
    Scope,
    ScopeKind,
    View,
)

if TYPE_CHECKING:
    from afterwatch.memory.api import Memory

__all__ = ["Channel", "Draft", "Item", "Layer", "Memory", "Outcome", "Result", "Scope", "ScopeKind", "View"]


def __getattr__(name: str) -> Any:
    if name == "Memory":
        from afterwatch.memory.api import Memory

        return Memory
    raise AttributeError(f"module 'afterwatch.memory' has no attribute {name!r}")
