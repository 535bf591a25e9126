"""A consumer of notifications as an outside service writes it: plain oslo.messaging, a process of
its own. Prints one JSON object per notification.

    python -m tests.events.consumer URL EXCHANGE TOPIC [--transient]
"""

import json
import logging
import sys
import threading
import time

import oslo_messaging
from oslo_config import cfg

_printing = threading.Lock()


def _say(said):
    with _printing:
        print(json.dumps(said), flush=True)


class Endpoint:
    """Prints what it is told, with the priority it was told at."""

    def _print(self, priority, *told):
        ctxt, publisher_id, event_type, payload, metadata = told
        _say(
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


def main():
    url, exchange, topic, *flags = sys.argv[1:]
    logging.basicConfig(level=logging.ERROR)
    conf = cfg.ConfigOpts()
    conf([], project="consumer")
    transport = oslo_messaging.get_notification_transport(conf, url=url)
    conf.set_override(
        "amqp_durable_queues", "--transient" not in flags, group="oslo_messaging_rabbit"
    )
    conf.set_override("kombu_reconnect_delay", 0.2, group="oslo_messaging_rabbit")
    targets = [oslo_messaging.Target(topic=topic, exchange=exchange)]
    listener = oslo_messaging.get_notification_listener(
        transport, targets, [Endpoint()], executor="threading"
    )
    # One thread: with more of them the consumer itself would mix up what it was told in order.
    conf.set_override("executor_thread_pool_size", 1)
    listener.start()
    _say({"ready": True})
    while True:
        time.sleep(3600)


if __name__ == "__main__":
    main()
