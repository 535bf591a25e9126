"""A bad network in front of an IPMI BMC: what passes is changed, or lost.

with udp_front(sim.driver_info["ipmi_port"]) as front:
    node = make_node(driver="ipmi", driver_info=sim.driver_info | {"ipmi_port": front.port})
    front.passes = lambda packet: None if kind(packet) == RAKP_2 else packet
"""

import select
import socket
import threading
from collections.abc import Callable
from collections.abc import Iterator
from contextlib import contextmanager
from contextlib import suppress

OPEN_REQUEST, OPEN_ANSWER, RAKP_1, RAKP_2, RAKP_3, RAKP_4 = range(0x10, 0x16)
_RMCP_PLUS = 6
_LONGEST = 4096
_STATUS = 17
"""Where a BMC's answers to a session's opening have their status."""


def kind(packet: bytes) -> int:
    """The kind of an RMCP+ packet; 0 is an order or what is answered to it, -1 anything else."""
    return packet[5] & 0x3F if packet[4] == _RMCP_PLUS else -1


def with_status(packet: bytes, status: int) -> bytes:
    """An answer to a session's opening that says something else."""
    return packet[:_STATUS] + bytes([status]) + packet[_STATUS + 1 :]


class UdpFront:
    """Passes packets on in both directions."""

    def __init__(self, behind: int) -> None:
        self.passes: Callable[[bytes], bytes | None] = lambda packet: packet
        self._here = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._here.bind(("127.0.0.1", 0))
        self.port = int(self._here.getsockname()[1])
        self._behind = behind
        self._ends: dict[tuple[str, int], socket.socket] = {}
        self.is_over = threading.Event()

    def run(self) -> None:
        """Until it is over."""
        while not self.is_over.is_set():
            ready, _, _ = select.select([self._here, *self._ends.values()], [], [], 0.05)
            for end in ready:
                with suppress(ConnectionError):  # nobody is behind
                    self._pass(end)
        for end in (self._here, *self._ends.values()):
            end.close()

    def _pass(self, end: socket.socket) -> None:
        packet, sender = end.recvfrom(_LONGEST)
        passed = self.passes(packet)
        if end is self._here:
            if sender not in self._ends:
                new = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
                new.connect(("127.0.0.1", self._behind))
                self._ends[sender] = new
            if passed is not None:
                self._ends[sender].send(passed)
        elif passed is not None:
            client = next(who for who, known in self._ends.items() if known is end)
            self._here.sendto(passed, client)


@contextmanager
def udp_front(behind: int) -> Iterator[UdpFront]:
    """A network in front of a port of loopback."""
    front = UdpFront(behind)
    thread = threading.Thread(target=front.run, daemon=True)
    thread.start()
    try:
        yield front
    finally:
        front.is_over.set()
        thread.join()
