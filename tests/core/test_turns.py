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
        assert turns.locks == {}

    asyncio.run(story())


def test_different_machines_do_not_wait_for_each_other():
    async def story():
        turns = Turns()
        async with turns.of("a"), asyncio.timeout(1), turns.of("b"):
            pass

    asyncio.run(story())
