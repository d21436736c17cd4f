"""Requests of this machine: while no access key exists, only these are allowed."""

import ipaddress
import re

from starlette.datastructures import Headers

from app.http.problems.errors import NotAdmitted

__all__ = ["check_local", "is_loopback"]

_HOST = re.compile(r"(?:\[(?P<v6>[0-9a-f:.]+)\]|(?P<name>[a-z0-9.-]+))(?::[0-9]+)?", re.IGNORECASE)


def is_loopback(host: str) -> bool:
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return host == "localhost"
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return (mapped or address).is_loopback


def _names_loopback(header: str) -> bool:
    """Whether a Host header, with or without a port, names this machine, by a name that no DNS can change."""
    found = _HOST.fullmatch(header)
    if found is None:
        return False
    name = (found["v6"] or found["name"]).lower()
    return is_loopback(name) or (found["v6"] is None and name.endswith(".localhost"))


_OWN_SITES = {"same-origin", "none"}
_OF_PROXIES = ("forwarded", "via", "x-forwarded-host", "cf-connecting-ip", "true-client-ip")


def check_local(method: str, address: str, headers: Headers) -> None:
    """Refuse requests of other machines, of a proxy's clients, and of pages of other sites.

    A page can let its own host name resolve to 127.0.0.1, but its browser then sends that name as Host. A page can also
    load an address of this machine, as an image for example, and then no Origin is sent. Then Sec-Fetch-Site names
    another site, and only a link that a person follows is allowed. Programs that are not browsers do not send it.
    """
    if not is_loopback(address) or _is_forwarded(headers):
        raise NotAdmitted(403, "no-keys")
    hosts, origins = headers.getlist("host"), headers.getlist("origin")
    if len(hosts) != 1 or not _names_loopback(hosts[0]):
        raise NotAdmitted(403, "host")
    if any(origin.partition("://")[2].lower() != hosts[0].lower() for origin in origins):
        raise NotAdmitted(403, "origin")
    if not {*headers.getlist("sec-fetch-site")} <= _OWN_SITES and not _is_followed_link(method, headers):
        raise NotAdmitted(403, "site")


def _is_followed_link(method: str, headers: Headers) -> bool:
    """Whether a browser opens this as a document of its own. Another site cannot read it."""
    asked = [headers.getlist(name) for name in ("sec-fetch-mode", "sec-fetch-dest")]
    return method in {"GET", "HEAD"} and asked == [["navigate"], ["document"]] and "origin" not in headers


def _is_forwarded(headers: Headers) -> bool:
    """Whether a proxy says that it asks for another machine. A client gains nothing if it says so falsely."""
    named = ",".join(value for name in ("x-forwarded-for", "x-real-ip") for value in headers.getlist(name))
    is_named = any(not is_loopback(each.strip()) for each in named.split(",") if named)
    return is_named or any(name in headers for name in _OF_PROXIES)
