"""Ports that tests get are theirs alone."""

import socket
import subprocess
import sys

from tests.support.ports import free_port

LOWEST_OF_THE_KERNEL = 32_768  # unless somebody has changed that
MANY = "from tests.support.ports import free_port; print([free_port() for _ in range(100)])"


def test_no_two_test_processes_get_the_same_port_nor_one_that_the_kernel_gives() -> None:
    pair = [
        subprocess.Popen([sys.executable, "-c", MANY], stdout=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    mine = {free_port() for _ in range(100)}
    told = [set(map(int, one.communicate()[0].strip("[]\n").split(","))) for one in pair]
    assert max(mine) < LOWEST_OF_THE_KERNEL
    assert not mine & (told[0] | told[1])


def test_a_port_that_was_given_is_not_given_again_while_there_are_others() -> None:
    given = [free_port() for _ in range(20)]
    assert len(set(given)) == 20


def test_a_port_that_is_in_use_is_passed_by() -> None:
    taken = free_port()
    with socket.create_server(("127.0.0.1", taken)):
        assert taken not in [free_port() for _ in range(80)]
    datagrams = free_port(socket.SOCK_DGRAM)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as other:
        other.bind(("127.0.0.1", datagrams))
        assert datagrams not in [free_port(socket.SOCK_DGRAM) for _ in range(80)]
