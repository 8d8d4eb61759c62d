"""Ports for the programs of a cluster."""

import socket

from hack.cluster.control_plane import PORTS, free_ports, is_free

EPHEMERAL = 32_768  # Linux takes the ports of outgoing connections from here on


def test_ports_are_none_that_an_outgoing_connection_could_take() -> None:
    """Else a program that is restarted could find its port taken."""
    ports = free_ports(5)
    assert len(set(ports)) == 5
    assert set(ports) <= set(PORTS)
    assert max(PORTS) < EPHEMERAL


def test_a_port_that_is_taken_is_not_handed_out() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
        assert not is_free(port)
    assert is_free(port)
