"""Addresses and names that always mean this machine."""

import ipaddress
import re

__all__ = ["is_loopback", "names_loopback"]

_HOST = re.compile(r"(?:\[(?P<v6>[0-9a-f:.]+)\]|(?P<name>[a-z0-9.-]+))(?::[0-9]+)?", re.IGNORECASE)


def is_loopback(host: str) -> bool:
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return host == "localhost"
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return (mapped or address).is_loopback


def names_loopback(header: str) -> bool:
    """Whether a Host header, with or without a port, names this machine, by a name that no DNS can change."""
    found = _HOST.fullmatch(header)
    if found is None:
        return False
    name = (found["v6"] or found["name"]).lower()
    return is_loopback(name) or (found["v6"] is None and name.endswith(".localhost"))
