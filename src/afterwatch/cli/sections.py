"""Every settings section of the program, by name: the one place where rooms' settings meet."""

from collections.abc import Mapping

from afterwatch.memory.settings import MemorySettings
from afterwatch.settings.config import Config

SECTIONS: Mapping[str, type] = {"memory": MemorySettings}


def load_config(flags: Mapping[str, object] | None = None) -> Config:
    """Return the settings of this run; `flags` maps `section.key` to what the command line gave."""
    return Config.load(SECTIONS, flags=flags)
