"""Consumers of notifications as an outside service writes them: plain oslo.messaging, each in a
process of its own, a fork of this one: to load the library takes longer than most of what they
hear. Each connection to the Unix socket named on the command line is one consumer:

    {"url": URL, "exchange": EXCHANGE, "topic": TOPIC, "durable": true}

is read from it, and one JSON object is written per notification until the other side lets go. Ends
with its standard input.

    python -m tests.events.consumer SOCKET
"""

import json
import logging
import os
import select
import signal
import socket
import sys
import threading

import oslo_messaging
from oslo_config import cfg


class Endpoint:
    """Tells what it is told, with the priority it was told at."""

    def __init__(self, out):
        self._out = out
        self._telling = threading.Lock()

    def say(self, said):
        with self._telling:
            self._out.write(json.dumps(said) + "\n")
            self._out.flush()

    def _print(self, priority, *told):
        ctxt, publisher_id, event_type, payload, metadata = told
        self.say(
            {
                "priority": priority,
                "publisher_id": publisher_id,
                "event_type": event_type,
                "payload": payload,
                "request_id": ctxt.get("request_id"),
                **metadata,
            }
        )

    def info(self, *told):
        self._print("INFO", *told)

    def error(self, *told):
        self._print("ERROR", *told)


def listen(endpoint, *, url, exchange, topic, durable):
    conf = cfg.ConfigOpts()
    conf([], project="consumer")
    transport = oslo_messaging.get_notification_transport(conf, url=url)
    conf.set_override("amqp_durable_queues", durable, group="oslo_messaging_rabbit")
    conf.set_override("kombu_reconnect_delay", 0.2, group="oslo_messaging_rabbit")
    targets = [oslo_messaging.Target(topic=topic, exchange=exchange)]
    listener = oslo_messaging.get_notification_listener(
        transport, targets, [endpoint], executor="threading"
    )
    # One thread: with more of them the consumer itself would mix up what it was told in order.
    conf.set_override("executor_thread_pool_size", 1)
    listener.start()
    endpoint.say({"ready": True})
    return listener


def consume(connection):
    """Until the other side lets go; then no more than a SIGKILL leaves."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    with connection.makefile("r") as lines, connection.makefile("w") as out:
        listener = listen(Endpoint(out), **json.loads(lines.readline()))
        lines.read()
        del listener  # it was needed until now
        os._exit(0)


def serve(address):
    """Fork for each connection, until nobody is left who would make one."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for the forks
    with socket.socket(socket.AF_UNIX) as door:
        door.bind(address)
        door.listen(16)
        print("ready", flush=True)
        while sys.stdin not in select.select([door, sys.stdin], [], [])[0]:
            connection, _ = door.accept()
            if os.fork() == 0:
                door.close()
                try:
                    consume(connection)
                finally:
                    os._exit(1)
            connection.close()


if __name__ == "__main__":
    logging.basicConfig(level=logging.ERROR)
    serve(sys.argv[1])
