"""The settings of this room. Standard library only."""

from dataclasses import dataclass, field


@dataclass(frozen=True)
class NetSettings:
    """Section `[net]` of the configuration."""

    offline: bool = field(default=False, metadata={"help": "Refuse every connection, whatever else is set."})
    private_hosts: tuple[str, ...] = field(
        default=(), metadata={"help": "Host names that may lead to private addresses, e.g. models.corp.example."}
    )


def net_settings() -> NetSettings:
    """The section as it is in force; a site may enforce it.

    Raises:
        UserError: the settings cannot be read.
    """
    from afterwatch.settings.config import Config

    return Config.load({"net": NetSettings}, complete=False).section(NetSettings)
