"""Facts sent to whoever asked for them, as HTTP requests.

A **webhook** is a subscription: an address, a filter, a secret. A **delivery** is one fact for one
webhook. The sender looks through the log for each webhook and makes deliveries of what it wants; it
sends them, those of one resource one after the other, and tries again what failed, until it gives
up: then the delivery is a **dead letter**, and the next of its resource goes out. At least once
rests on the rows alone: a delivery is done when its row says so.
"""
