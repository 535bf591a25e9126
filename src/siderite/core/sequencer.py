"""Places in the event log for facts that were committed without (PostgreSQL): each process offers
to give them out, and one at a time does.
"""

import asyncio

from siderite.core.store import Store

PLACE = """
WITH first AS (
  SELECT min(id) AS id FROM events WHERE seq IS NULL
), head AS (
  SELECT seq FROM event_head WHERE (SELECT id FROM first) IS NOT NULL FOR UPDATE SKIP LOCKED
), known AS (
  SELECT seq FROM event_head
), unplaced AS (
  SELECT array_agg(id ORDER BY id) AS ids, min(id) AS first, max(id) AS last FROM events
  WHERE seq IS NULL AND id >= (SELECT id FROM first)
    AND (SELECT seq FROM head) = (SELECT seq FROM known)
), placed AS (
  UPDATE events SET seq = (SELECT seq FROM head) + width_bucket(id, (SELECT ids FROM unplaced))
  WHERE seq IS NULL AND id BETWEEN (SELECT first FROM unplaced) AND (SELECT last FROM unplaced)
  RETURNING 1
), moved AS (
  UPDATE event_head SET seq = event_head.seq + (SELECT count(*) FROM placed)
  WHERE EXISTS (SELECT FROM placed) RETURNING 1
)
SELECT (SELECT seq FROM head) = (SELECT seq FROM known) OR (SELECT id FROM first) IS NULL,
  (SELECT count(*) FROM placed), (SELECT seq FROM known)%s
"""
"""The sequencer's statement. It has no arguments, so that PostgreSQL plans it once: perhaps while
there are no facts, so it joins nothing, as that plan would then be the wrong one. `width_bucket` is
which of the numbers a number is. Where there is nothing to place it locks nothing, as that would
be written to the disk.
"""
_TELL = ", (SELECT pg_notify('%s', '') FROM moved)"
_AGAIN_S = 0.02


async def place(store: Store, tell: str = "") -> tuple[int, int]:
    """Give committed facts their place in the log (PostgreSQL), and send a signal if there were
    any: the last number before them, and the last of them.

    A fact of one resource is committed after the one before it was visible, so the order of `id` is
    right per resource; the lock on the head makes it one sequencer at a time. Whoever finds it
    locked, or moved since the statement saw the facts, comes again: nobody holds it over a round
    trip. The least `id` is asked for apart because that finds it by walking the index, which clears
    away what had no place before.
    """
    sql = PLACE % (_TELL % tell if tell else "")
    while True:
        is_ours, count, head = (await store.write(sql))[0][:3]
        if is_ours:
            return int(head or 0), int(head or 0) + int(count or 0)
        await asyncio.sleep(_AGAIN_S)
