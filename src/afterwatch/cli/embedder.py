"""`afterwatch memory embedder`: which model turns text into vectors, and how to change it."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from afterwatch.cli.options import Json, grouped
from afterwatch.cli.outcomes import degraded
from afterwatch.cli.output import print_json, say, table
from afterwatch.cli.sections import load_config
from afterwatch.cli.view import current_view, memory_settings, meter, needs_user, open_memory
from afterwatch.errors import UserError
from afterwatch.memory.embedders import EMBEDDERS
from afterwatch.memory.files import DATABASE, cache_in
from afterwatch.memory.settings import MemorySettings
from afterwatch.settings.paths import cache_dir, ensure_home, home, spaces_dir

if TYPE_CHECKING:
    from afterwatch.memory.embedders import Embedder, Loading
    from afterwatch.memory.model import View

app = typer.Typer(
    help="Show and change the model that turns text into vectors.", no_args_is_help=True, rich_markup_mode=None
)

NAMES = ", ".join(("none", *EMBEDDERS))
OURS = ("default", "site file", "user file")
"""Where a setting may come from for a change in the user file to take effect."""

ValidateOnly = Annotated[bool, typer.Option("--validate-only", help="Build and try the candidate; change nothing.")]
Seconds = Annotated[float, typer.Option("--timeout", min=1, help="Seconds that it may take to load.")]


@dataclass(frozen=True)
class Where:
    """Where an embedder is found; what is not given stays as it is set."""

    url: Annotated[str | None, typer.Option("--url", help="endpoint: address such as https://host/v1.")] = None
    model: Annotated[str | None, typer.Option("--model", help="endpoint: name of the model.")] = None
    key: Annotated[
        str | None, typer.Option("--key-variable", help="endpoint: environment variable that holds the key.")
    ] = None
    file: Annotated[str | None, typer.Option("--file", help="gguf: your own model file.")] = None
    mirror: Annotated[str | None, typer.Option("--mirror", help="gguf: where to download the model instead.")] = None

    def flags(self, name: str) -> dict[str, object]:
        """The settings these options mean, by key."""
        given = {"url": self.url, "model": self.model, "key": self.key} if name == "endpoint" else {}
        given |= {"file": self.file, "url": self.mirror} if name == "gguf" else {}
        extra = {self.url, self.model, self.key, self.file, self.mirror} - {None, *given.values()}
        if extra:
            raise UserError(f"{name} takes no such option", remedy="see `afterwatch memory embedder set --help`")
        return {f"memory.{name}_{key}": value for key, value in given.items()}


@app.command(epilog="Example: afterwatch memory embedder show --json")
def show(as_json: Json = False) -> None:
    """Show the embedder, its model, where text goes, and how many items have its vectors. Loads nothing."""
    from afterwatch.memory import gates
    from afterwatch.memory.embedders.record import KEYS, model_of, read_record

    settings = memory_settings()
    record = read_record(home())
    found: dict[str, Any] = {
        "embedder": settings.embedder,
        "model": model_of(settings, home()),
        "gate": gates.origin_of(model_of(settings, home()), gates.fitted(home())),
        "settings": {key: getattr(settings, key) for key in KEYS[1:] if key.startswith(f"{settings.embedder}_")},
        "text_goes_to": destination(settings),
        "previous": dict(record.previous) if record.previous is not None else None,
        "vectors": _vectors(),
    }
    if as_json:
        print_json(found)
        return
    say(f"{settings.embedder}: {found['model'] or 'not known before it was loaded once'}")
    say(f"text goes to: {found['text_goes_to'] or 'nowhere, all stays on this machine'}")
    say(f"gate: {found['gate']}" + ("; see `afterwatch memory calibrate`" if found["gate"] == "cautious" else ""))
    for key, value in found["settings"].items():
        say(f"memory.{key}: {value}")
    if record.previous is not None:
        say(f"before: {record.previous.get('embedder')} (`afterwatch memory embedder revert`)")
    table(
        ["space", "model", "vectors"], [(s, m, n) for s, models in found["vectors"].items() for m, n in models.items()]
    )


@app.command("set", epilog="Example: afterwatch memory embedder set endpoint --url https://host/v1 --model NAME")
@grouped
def set_(
    name: Annotated[str, typer.Argument(metavar="NAME", help=f"One of {NAMES}.")],
    where: Where,
    validate_only: ValidateOnly = False,
    timeout: Seconds = 600,
    as_json: Json = False,
) -> None:
    """Change the embedder: build and try the new one, name it in the settings, embed everything anew. Only you may."""
    if name not in ("none", *EMBEDDERS):
        raise UserError(f"no embedder {name!r}", remedy=f"use one of: {NAMES}")
    chosen = load_config({"memory.embedder": name, **where.flags(name)}).section(MemorySettings)
    _change(chosen, validate_only, timeout, as_json)


@app.command(epilog="Example: afterwatch memory embedder revert")
def revert(validate_only: ValidateOnly = False, timeout: Seconds = 600, as_json: Json = False) -> None:
    """Go back to the embedder before the last change; without one, to the bundled. Only you may."""
    from afterwatch.memory.embedders.record import KEYS, read_record

    previous = read_record(home()).previous or {"embedder": MemorySettings().embedder}
    name = previous.get("embedder", "")
    ours = {key: previous[key] for key in KEYS if key in previous and (key == "embedder" or key.startswith(f"{name}_"))}
    # through the loader: what stands in a file is checked like what was typed
    chosen = load_config({f"memory.{key}": value for key, value in ours.items()}).section(MemorySettings)
    _change(chosen, validate_only, timeout, as_json)


def destination(settings: MemorySettings) -> str:
    """The server that gets remembered text, or nothing."""
    from urllib.parse import urlsplit

    return urlsplit(settings.endpoint_url).netloc if settings.embedder == "endpoint" else ""


def calibrate(
    save: Annotated[bool, typer.Option("--save", help="Put the fitted gate in force. Only you may.")] = False,
    as_json: Json = False,
) -> None:
    """Fit the gate's two thresholds for the embedder in use; prints F1 on pairs that were held back."""
    from afterwatch.memory import gates
    from afterwatch.memory.calibrate import run
    from afterwatch.memory.embedders import load

    if save:
        _for_user("only the user changes what may enter a prompt")
        ensure_home()
    settings = memory_settings()
    model = load(settings.embedder, cache_in(home()), settings)
    name, kept = model.id if model is not None else None, gates.fitted(home())
    with meter("calibrating") as progress:
        gate, report = run(model, gates.gate_of(name, kept), progress)
    report["in_force"]["from"] = gates.origin_of(name, kept)
    if save:
        gates.keep(home(), name, gate)
    report["saved"] = save
    if as_json:
        print_json(report)
        return
    _say_calibrated(report)


def _say_calibrated(report: dict[str, Any]) -> None:
    rows = [
        [
            name.replace("_", " "),
            one["language"],
            one["length"],
            one["pairs"],
            one["precision"],
            one["recall"],
            one["f1"],
        ]
        for name in ("in_force", "fitted")
        for one in report[name]["figures"]
    ]
    table(["gate", "language", "text", "pairs", "precision", "recall", "F1"], rows)
    for name in ("in_force", "fitted"):
        figures = ", ".join(f"{key} {value}" for key, value in report[name]["gate"].items())
        say(f"{name.replace('_', ' ')}: {figures}" + (f" ({report[name]['from']})" if "from" in report[name] else ""))
    say(
        "the fitted gate is in force now"
        if report["saved"]
        else "nothing was changed; --save puts the fitted gate in force"
    )


# -- changing ------------------------------------------------------------------------------------------------------


def _change(chosen: MemorySettings, validate_only: bool, seconds: float, as_json: bool) -> None:
    from afterwatch.memory.api import Memory
    from afterwatch.memory.embedders import Loading, load

    view = _for_user()
    before = memory_settings()
    _refuse_overridden()
    ensure_home()
    serving = Loading(lambda: load(before.embedder, cache_dir(), before))
    embedder = _swapped(chosen, before, serving, validate_only, seconds)
    if validate_only:
        _say({"embedder": chosen.embedder, "changed": False, **_described(embedder)}, as_json)
        return
    with Memory.open(settings=chosen, embedder=serving) as memory, meter("embedding") as progress:
        missing = memory.warm_up(replace(view, read=_all_spaces(view)), progress=progress)
    missing = () if embedder is None else missing
    _say({"embedder": chosen.embedder, "changed": True, **_described(embedder), "degraded": list(missing)}, as_json)


def _swapped(
    chosen: MemorySettings, before: MemorySettings, serving: "Loading", validate_only: bool, seconds: float
) -> "Embedder | None":
    from afterwatch.memory.embedders import build
    from afterwatch.memory.embedders.record import choice_of
    from afterwatch.memory.embedders.swap import Change, change

    choice = choice_of(chosen)
    ours = {key: choice[key] for key in choice if key == "embedder" or key.startswith(f"{chosen.embedder}_")}
    if chosen.embedder == "none":
        if not validate_only:
            load_config().set_values("memory", ours)
            serving.replace(None)
        return None
    if chosen.embedder == "gguf":
        from afterwatch.memory.embedders.gguf import fetch

        with meter("downloading") as progress:
            fetch(cache_dir(), chosen, progress)
    plan = Change(
        home=home(),
        build=lambda: build(chosen.embedder, cache_dir(), chosen),
        choice=choice,
        previous=choice_of(before),
        configure=lambda _: load_config().set_values("memory", ours),
    )
    return change(plan, serving, validate_only=validate_only, seconds=seconds)


def _for_user(what: str = "only the user chooses where remembered text goes") -> "View":
    needs_user(what)
    return current_view()


def _refuse_overridden() -> None:
    """A change that something stronger hides would be written and never used."""
    from afterwatch.memory.embedders.record import KEYS

    config = load_config()
    for key in KEYS:
        setting = config.setting(f"memory.{key}")
        if setting.origin not in OURS:
            raise UserError(
                f"memory.{key} is decided by {setting.origin} {setting.source}",
                remedy="unset it there first",
                code="overridden",
            )


def _described(embedder: "Embedder | None") -> Mapping[str, Any]:
    return {"model": embedder.id, "dimensions": embedder.dimensions} if embedder is not None else {"model": None}


def _say(found: dict[str, Any], as_json: bool) -> None:
    if as_json:
        print_json(found)
        return
    model = f"{found['model']}, {found['dimensions']} dimensions" if found["model"] else "keywords only"
    say(f"{found['embedder']}: {model}" + ("" if found["changed"] else "; sound, nothing was changed"))
    degraded(found.get("degraded", ()))


# -- looking -------------------------------------------------------------------------------------------------------


def _all_spaces(view: "View") -> tuple[str, ...]:
    """Every space on this disk."""
    root = spaces_dir()
    found: list[Path] = sorted([*root.glob(f"*/{DATABASE}"), *root.glob(f"*/*/{DATABASE}")])
    return tuple(dict.fromkeys((view.write, *(":".join(path.parent.relative_to(root).parts) for path in found))))


def _vectors() -> dict[str, dict[str, int]]:
    """Space → model → vectors."""
    view = current_view()
    with open_memory() as memory:
        return {str(one["space"]): dict(one["vectors"]) for one in memory.stats(replace(view, read=_all_spaces(view)))}
