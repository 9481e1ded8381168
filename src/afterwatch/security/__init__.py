"""What keeps secrets out of everything else: redaction, guarded reads, the audit log.

Importing this package costs nothing: the patterns are compiled at the first `redact`.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from afterwatch.security.audit import AuditLog, Event, Verification
    from afterwatch.security.reading import safe_read, sensitive_kind
    from afterwatch.security.redaction import Finding, Redacted, redact, redact_argv

_HOMES = {
    "AuditLog": "audit",
    "Event": "audit",
    "Verification": "audit",
    "safe_read": "reading",
    "sensitive_kind": "reading",
    "Finding": "redaction",
    "Redacted": "redaction",
    "redact": "redaction",
    "redact_argv": "redaction",
}
__all__ = [
    "AuditLog",
    "Event",
    "Finding",
    "Redacted",
    "Verification",
    "redact",
    "redact_argv",
    "safe_read",
    "sensitive_kind",
]


def __getattr__(name: str) -> Any:
    """Load a public name on first use."""
    if name in _HOMES:
        from importlib import import_module

        return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
