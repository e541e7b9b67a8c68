"""Where processes of this node listen: at which address, and at ports that are free till then."""

import random
import socket

_RANGE = "/proc/sys/net/ipv4/ip_local_port_range"
_FIRST, _LAST = 10000, 65535
_ENOUGH = 1000


def claimed_ports(count):
    """Ports where nobody listens, nor any other run on this node will -> what claims each."""
    # None is of those that the kernel gives to any connection, as long as enough others are left.
    claims, candidates = {}, _candidates()
    while len(claims) < count:
        port = random.SystemRandom().choice(candidates)
        if port not in claims and _is_free(port):
            # Of UDP's ports, which are others, nobody else takes it; so it can be held.
            claim = socket.socket(type=socket.SOCK_DGRAM)
            try:
                claim.bind(("", port))
            except OSError:
                claim.close()
            else:
                claims[port] = claim
    return claims


def address_towards(host, port):
    """The address from which this node reaches another one; nothing is sent."""
    with socket.socket(type=socket.SOCK_DGRAM) as probe:
        probe.connect((host, port))
        return probe.getsockname()[0]


def _candidates():
    try:
        with open(_RANGE) as stream:
            first, last = map(int, stream.read().split())
    except OSError:  # not Linux
        first, last = 32768, 60999
    others = [*range(_FIRST, min(first, _LAST)), *range(max(last + 1, _FIRST), _LAST)]
    return others if len(others) >= _ENOUGH else range(_FIRST, _LAST)


def _is_free(port):
    with socket.socket() as probe:
        try:
            probe.bind(("", port))
        except OSError:
            return False
    return True
