"""Ports for what listens later: nobody else gets them in the meantime."""

import socket

from trainers.contract import ports


def test_a_port_is_claimed_once_and_is_none_that_the_kernel_gives_away(monkeypatch):
    claims = ports.claimed_ports(3)
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        assert other.getsockname()[1] not in ports._candidates()
    monkeypatch.setattr(ports, "_candidates", lambda: list(claims))
    claimed, listened_on, free = claims
    with claims[claimed], socket.socket() as listener:
        listener.bind(("127.0.0.1", listened_on))
        claims[listened_on].close()
        claims[free].close()
        assert list(ports.claimed_ports(1)) == [free]
