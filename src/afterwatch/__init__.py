"""afterwatch: an on-call copilot that remembers."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from afterwatch.memory import Memory, View

__version__ = "0.1.0"
__all__ = ["Memory", "View", "__version__"]


def __getattr__(name: str) -> Any:
    """Load the public classes on first use, so that importing the package stays cheap."""
    if name in ("Memory", "View"):
        from afterwatch import memory

        return getattr(memory, name)
    raise AttributeError(f"module 'afterwatch' has no attribute {name!r}")
