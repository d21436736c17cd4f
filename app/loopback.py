"""Which addresses are this machine's own."""

import ipaddress

__all__ = ["is_loopback"]


def is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
