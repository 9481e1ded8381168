"""Which addresses may be connected to: the rule against being sent to where nobody meant to go. Pure."""

import ipaddress
import socket
from collections.abc import Callable, Collection

from afterwatch.errors import Unavailable, UserError

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Resolve = Callable[[str, int], list[str]]
"""(host, port) → its addresses as text."""

METADATA = frozenset(map(ipaddress.ip_address, ("169.254.169.254", "100.100.100.200", "fd00:ec2::254")))
"""Where clouds hand out credentials: never, also not where private addresses are allowed."""
NAT64 = ipaddress.ip_network("64:ff9b::/96")
LOCAL_NAMES = frozenset(("localhost", "localhost.localdomain", "ip6-localhost"))


def resolve(host: str, port: int) -> list[str]:
    """All addresses of a host, as the system knows them.

    Raises:
        Unavailable: the name is not known, or the resolver does not answer.
    """
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise Unavailable(
            f"no address is known for {host}", remedy="check the name and the network", code="net_name"
        ) from (error)
    return list(dict.fromkeys(str(entry[4][0]) for entry in found))


def literal(host: str) -> Address | None:
    """The address that a host is written as, or None if it is a name."""
    try:
        return ipaddress.ip_address(host.strip("[]"))
    except ValueError:
        return None


def means_private(host: str, private_hosts: Collection[str]) -> bool:
    """Whether whoever wrote this host into the settings meant a machine of their own."""
    folded = host.lower().rstrip(".")
    return folded in LOCAL_NAMES or literal(host) is not None or folded in {one.lower() for one in private_hosts}


def checked(host: str, port: int, *, private: bool, resolver: Resolve = resolve) -> str:
    """An address of a host that may be connected to; all of them must be allowed, for the resolver picks any.

    Args:
        host: a name or an address.
        port: of the service.
        private: loopback and private networks are allowed.
        resolver: default the system's.

    Raises:
        UserError: an address is refused. Unavailable: the name is not known.
    """
    written = literal(host)
    found = [str(written)] if written is not None else resolver(host, port)
    if not found:
        raise Unavailable(f"no address is known for {host}", remedy="check the name and the network", code="net_name")
    for text in found:
        reason = refused(ipaddress.ip_address(text.partition("%")[0]), private=private)
        if reason:
            raise UserError(
                f"{host} leads to {reason}",
                remedy="name another server, or add the host to net.private_hosts",
                code="net_refused",
            )
    return found[0]


def refused(address: Address, *, private: bool) -> str:
    """Why an address may not be connected to; empty if it may."""
    address = _inner(address)
    if address in METADATA or address.is_link_local:
        return "a link-local or metadata address, which is never connected to"
    if address.is_multicast or address.is_unspecified or (address.is_reserved and not address.is_loopback):
        return "an address that no server has"
    if not private and not address.is_global:
        return "an address of this machine or a private network"
    return ""


def _inner(address: Address) -> Address:
    """The IPv4 address that an IPv6 one wraps."""
    if not isinstance(address, ipaddress.IPv6Address):
        return address
    if address.ipv4_mapped is not None:
        return address.ipv4_mapped
    if address.sixtofour is not None:
        return address.sixtofour
    if address in NAT64:
        return ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    return address
