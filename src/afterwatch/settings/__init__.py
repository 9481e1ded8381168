"""Where afterwatch keeps its things, what its settings are, and what time it is. Standard library only."""

from afterwatch.settings.clock import Clock, FixedClock, SystemClock
from afterwatch.settings.config import Config
from afterwatch.settings.paths import (
    cache_dir,
    config_file,
    ensure_home,
    home,
    site_config_file,
    spaces_dir,
    usable_home,
)

__all__ = [
    "Clock",
    "Config",
    "FixedClock",
    "SystemClock",
    "cache_dir",
    "config_file",
    "ensure_home",
    "home",
    "site_config_file",
    "spaces_dir",
    "usable_home",
]
