"""Where ranks meet over TCP, at rank 0, that no collective joins, as beside parameter servers."""

import json
import os
import select
import socket
import time

ADDRESS = "MEETING"  # the environment variable that says where rank 0 listens: "host:port"
PARTING = "PARTING"
"""That which says where it does so at the end of a run whose ranks have collectives."""
_SECONDS_BETWEEN_TRIES = 0.05
_SECONDS_TO_SAY_WHO = 10


class Meeting:
    """All ranks of a run; made once all of them are there."""

    def __init__(self, place, address):
        self._rank, _, self._size = place
        host, _, port = address.rpartition(":")
        if self._rank:
            self._lines, self._said = {0: _Line(_connected((host, int(port))))}, {}
            self._lines[0].say(self._rank)
        else:
            self._lines, self._said = _all_others(int(port), self._size)

    @classmethod
    def of(cls, place, variable=ADDRESS):
        """The meeting that the launch has named; None: there is none, or nobody to meet."""
        address = os.environ.get(variable)
        return cls(place, address) if address and place.world_size > 1 else None

    def enter(self, value):
        """Say something to all ranks, and wait for nothing: anything that JSON can say."""
        if self._rank:
            self._lines[0].say(value)
        else:
            self._said[0] = value

    def entered(self):
        """What all ranks have said, in order, or None before; ConnectionError: one has gone."""
        # Whoever has said the last word may have gone since.
        if len(self._said) < (1 if self._rank else self._size):
            self._listen(0)
        if self._rank:
            return self._said.pop(0, None)
        if len(self._said) < self._size:
            return None
        values = [self._said[rank] for rank in range(self._size)]
        self._said = {}
        for line in self._lines.values():
            line.say(values)
        return values

    def gather(self, value):
        """What all ranks say here, in their order; it waits for the last of them."""
        self.enter(value)
        while True:
            values = self.entered()
            if values is not None:
                return values
            self._listen(None)

    def _listen(self, seconds):
        """Take what others have said; wait so long, or for ever, if nobody has."""
        waited = {line.connection: rank for rank, line in self._lines.items()}
        for connection in select.select(list(waited), [], [], seconds)[0]:
            rank = waited[connection]
            for value in self._lines[rank].heard(rank):
                self._said[rank] = value


class _Line:
    """A connection on which each line is a value."""

    def __init__(self, connection):
        self.connection = connection
        self._begun = b""

    def say(self, value):
        self.connection.sendall(json.dumps(value).encode() + b"\n")

    def heard(self, rank):
        """The values that have come whole; call it when something has come."""
        said = self.connection.recv(1 << 16)
        if not said:
            raise ConnectionError("rank %d has left the others" % rank)
        *whole, self._begun = (self._begun + said).split(b"\n")
        return [json.loads(line) for line in whole]


def _connected(address):
    """A connection to rank 0, which may come later."""
    while True:
        try:
            return _without_delay(socket.create_connection(address))
        except OSError:
            time.sleep(_SECONDS_BETWEEN_TRIES)


def _all_others(port, size):
    """Rank -> the connection of each other rank, once all have come; and what they said by then."""
    lines, values = {}, {}
    with socket.socket() as door:
        door.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        door.bind(("", port))
        door.listen(size)
        while len(lines) < size - 1:
            line = _Line(_without_delay(door.accept()[0]))
            rank, *more = _who(line)
            if rank in range(1, size) and rank not in lines:
                lines[rank] = line
                # A rank that has come goes on at once, and may have entered something already.
                values.update((rank, value) for value in more)
    return lines, values


def _who(line):
    """Which rank has come, and what it said next; None: it is no rank, or does not say so."""
    line.connection.settimeout(_SECONDS_TO_SAY_WHO)
    try:
        said = line.heard(0)
    except (OSError, ValueError):
        return (None,)
    line.connection.settimeout(None)
    return said if said and type(said[0]) is int else (None,)


def _without_delay(connection):
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return connection
