"""How often a client may fail: a burst of failures, then one every few seconds."""

import ipaddress
import time
from collections import OrderedDict
from collections.abc import Callable

__all__ = ["Attempts", "network_of"]

_MOST_IDENTITIES = 10_000


class Attempts:
    """Failures of each client, by its address or the id of its access key."""

    def __init__(self, *, burst: int = 10, seconds: float = 6.0, clock: Callable[[], float] = time.monotonic) -> None:
        self._burst = burst
        self._seconds = seconds
        self._clock = clock
        self._until: OrderedDict[str, float] = OrderedDict()

    def wait(self, identity: str) -> float:
        """The seconds until the next attempt may be made."""
        ahead = self._until.get(identity, 0.0) - self._clock()
        return max(0.0, ahead - (self._burst - 1) * self._seconds)

    def failed(self, identity: str) -> None:
        """Count a failure. If there are too many clients to remember, the oldest failure is forgotten first."""
        now = self._clock()
        self._until[identity] = max(self._until.pop(identity, now), now) + self._seconds
        while len(self._until) > _MOST_IDENTITIES:
            self._until.popitem(last=False)


def network_of(address: str) -> str:
    """The address; for IPv6 its /64 network, because one machine may use all of it."""
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        return address
    if isinstance(parsed, ipaddress.IPv4Address):
        return str(parsed)
    if parsed.ipv4_mapped is not None:
        return str(parsed.ipv4_mapped)
    return str(ipaddress.ip_network((int(parsed) >> 64 << 64, 64)))
