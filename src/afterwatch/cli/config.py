"""`afterwatch config`: what the settings are, where they come from, and how to change one."""

import typer

from afterwatch.cli.output import print_json, say, table
from afterwatch.cli.sections import load_config
from afterwatch.cli.view import needs_user
from afterwatch.settings.config import Setting

app = typer.Typer(help="Show and change settings.", no_args_is_help=True, rich_markup_mode=None)

SENDS: frozenset[str | tuple[str, str]] = frozenset(
    (
        *("memory.endpoint_url", "memory.endpoint_key", "memory.gguf_url", "net.private_hosts"),
        ("memory.embedder", "endpoint"),
        ("net.offline", "false"),
    )
)
"""Settings, or values of them, by which remembered text could leave the machine."""

JSON = typer.Option(False, "--json", help="Print a JSON document.")
KEY = typer.Argument(help="Name of the setting, such as memory.search_limit.")


@app.command(epilog="Example: afterwatch config get memory.search_limit")
def get(key: str = KEY, as_json: bool = JSON) -> None:
    """Print the value of one setting."""
    setting = load_config().setting(key)
    if as_json:
        print_json(_document(setting))
    else:
        say(_shown(setting.value))


@app.command("set", epilog="Example: afterwatch config set memory.search_limit 20")
def set_(
    key: str = KEY,
    value: str = typer.Argument(help="The new value; a list as a,b."),
    as_json: bool = JSON,
) -> None:
    """Write one setting to your own settings file. Where text may be sent, only the user decides."""
    if key in SENDS or (key, value) in SENDS:
        needs_user("only the user chooses where remembered text goes")
    written = load_config().set_value(key, value)
    setting = load_config().setting(key)
    if as_json:
        print_json(_document(setting))
        return
    say(f"{key} = {_shown(written)}")
    if setting.origin != "user file":  # it is written, but something stronger decides here
        say(f"note: {_shown(setting.value)} is in force, from {setting.origin} {setting.source}", error=True)


@app.command("list", epilog="Example: afterwatch config list --origin")
def list_(
    origin: bool = typer.Option(False, "--origin", help="Also show where each value comes from."),
    as_json: bool = JSON,
) -> None:
    """Print every setting with its value."""
    settings = load_config().settings()
    if as_json:
        print_json({"settings": [_document(setting) for setting in settings]})
    elif origin:
        rows = [(one.field.key, _shown(one.value), one.origin, one.source) for one in settings]
        table(["setting", "value", "origin", "source"], rows)
    else:
        rows_plain = [(one.field.key, _shown(one.value), one.field.help) for one in settings]
        table(["setting", "value", "meaning"], rows_plain)


def _shown(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple):
        return ",".join(map(str, value))
    return "" if value is None else str(value)


def _document(setting: Setting) -> dict[str, object]:
    return {
        "key": setting.field.key,
        "value": setting.value,
        "origin": setting.origin,
        "source": setting.source,
        "default": setting.field.default,
        "help": setting.field.help,
    }
