"""Taking turns: one at a time per machine, first come first served, and nothing is kept."""

import asyncio

from siderite.core.turns import Turns


def test_changes_of_one_machine_go_one_after_the_other_in_order():
    async def story():
        turns, order, inside = Turns(), [], 0

        async def change(number):
            nonlocal inside
            async with turns.of("m"):
                inside += 1
                assert inside == 1
                await asyncio.sleep(0)
                order.append(number)
                inside -= 1

        await asyncio.gather(*(change(number) for number in range(20)))
        assert order == list(range(20))
        assert turns.queues == {}

    asyncio.run(story())


def test_different_machines_do_not_wait_for_each_other():
    async def story():
        turns = Turns()
        async with turns.of("a"), asyncio.timeout(1), turns.of("b"):
            pass

    asyncio.run(story())


def test_who_gives_up_waiting_keeps_nobody_waiting():
    """Whether it was not its turn yet, or has just become so."""

    async def story():
        for is_late in (False, True):
            turns, seen = Turns(), []

            async def change(name, turns=turns, seen=seen):
                async with turns.of("m"):
                    seen.append(name)

            async with turns.of("m"):
                waiting = [asyncio.create_task(change(name)) for name in ("a", "b")]
                await asyncio.sleep(0)
                if not is_late:
                    waiting[0].cancel()
                    await asyncio.sleep(0)
            if is_late:
                waiting[0].cancel()
            async with asyncio.timeout(1):
                await asyncio.gather(*waiting, return_exceptions=True)
            assert (seen, turns.queues) == (["b"], {})

    asyncio.run(story())
