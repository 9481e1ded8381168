"""`afterwatch security`: read the audit log and check that nobody changed it."""

import dataclasses
from datetime import UTC, datetime

import typer

from afterwatch.cli.output import print_json, say, table
from afterwatch.security.audit import AuditLog, Event
from afterwatch.settings.paths import home

app = typer.Typer(help="Read and verify the audit log.", no_args_is_help=True, rich_markup_mode=None)

JSON = typer.Option(False, "--json", help="Print a JSON document.")


def audit_log() -> AuditLog:
    """Return the log of this installation."""
    return AuditLog(home() / "audit.db")


@app.command(epilog="Example: afterwatch security events --limit 20")
def events(
    limit: int = typer.Option(50, "--limit", "-n", min=1, max=100_000, help="How many, newest first."),
    kind: str | None = typer.Option(None, "--kind", help="Only events of this kind."),
    as_json: bool = JSON,
) -> None:
    """List what was done: ids and redacted commands, never remembered text."""
    found = audit_log().events(limit, kind)
    if as_json:
        print_json({"events": [{**dataclasses.asdict(event), "at": _when(event)} for event in found]})
    elif not found:
        say("no events")
    else:
        rows = [
            (event.seq, _when(event), event.kind, event.actor, " ".join(event.subjects), " ".join(event.argv))
            for event in found
        ]
        table(["seq", "at", "kind", "actor", "subjects", "command"], rows)


@app.command(epilog="Example: afterwatch security verify --json")
def verify(
    anchor: str | None = typer.Option(
        None, "--anchor", help="What an earlier verify printed: shows that the log only grew since."
    ),
    as_json: bool = JSON,
) -> None:
    """Check the chain of the audit log; exit status 1 if a row was changed or removed."""
    result = audit_log().verify(anchor)
    if as_json:
        print_json(dataclasses.asdict(result))
    elif result.ok:
        say(f"ok: {result.events} events, whole{' and only extended' if anchor else ''}")
        say(f"anchor: {result.head}")
    else:
        say(f"broken at row {result.broken}: {result.reason}")
        say(f"sound up to: {result.head}")
    if not result.ok:
        raise typer.Exit(1)


def _when(event: Event) -> str:
    try:
        return datetime.fromtimestamp(event.at_us / 1_000_000, UTC).isoformat(timespec="seconds")
    except (OverflowError, ValueError, OSError, TypeError):  # a tampered row is still listed
        return "[unreadable]"
