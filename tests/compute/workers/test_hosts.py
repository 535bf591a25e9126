"""Hosts as the watch writes them down, while others change them or the database loses commits."""

import msgspec
import pytest

from siderite.compute import store as rows
from siderite.compute.domain.host import Amount
from siderite.compute.usecases.fleet import hosts
from siderite.compute.workers.host_watch import ask_silent
from siderite.core.store import Op
from tests.compute.workers.test_tidying import tidy


class Rows:
    """What the database has of hosts."""

    def __init__(self, cloud):
        self._run = cloud.app.run
        self.ctx = cloud.app.app.program.compute.context
        self.store = self.ctx.door.store

    def offers(self, host):
        sql = "SELECT node, vcpus FROM hypervisors WHERE host = ?"
        return [tuple(row) for row in self._run(self.store.fetch(sql, (host,)))]

    def host(self, name):
        return self._run(hosts.named(self.ctx, name))

    def commit(self, *ops):
        self._run(self.store.commit(ops))


@pytest.fixture
def written(both):
    return Rows(both)


def test_a_host_that_is_given_a_server_while_it_is_removed_stays(both, written, monkeypatch):
    name = both.add_host()
    [(node, _)] = written.offers(name)
    door, commit = written.ctx.door, written.ctx.door.commit
    late = rows.claim("a server", "now", host=name, node=node, amount=Amount(1, 1, 1))

    async def slow(change):
        monkeypatch.setattr(door, "commit", commit)
        await door.store.commit(late)
        await commit(change)

    monkeypatch.setattr(door, "commit", slow)
    answer = both.ask("DELETE", f"/hosts/{name}", version=900)
    assert (answer.status, b"carries servers (1)" in answer.body) == (409, True)
    assert written.host(name) is not None
    written.commit(*rows.free_many("a server", [("now", name, node, Amount(1, 1, 1))]))
    assert both.ask("DELETE", f"/hosts/{name}", version=900).status == 204
    assert written.offers(name) == []


def test_a_host_that_is_removed_leaves_its_aggregates(both):
    name, other = both.add_host(), both.add_host()
    fields = {"name": f"row of {name}", "availability_zone": f"zone-{name}"}
    made = both.ask("POST", "/os-aggregates", {"aggregate": fields}).json["aggregate"]["id"]
    for host in (name, other):
        added = both.ask("POST", f"/os-aggregates/{made}/action", {"add_host": {"host": host}})
        assert added.status == 200, added
    assert both.ask("DELETE", f"/hosts/{name}", version=900).status == 204
    aggregate = both.ask("GET", f"/os-aggregates/{made}").json["aggregate"]
    assert aggregate["hosts"] == [other]


def test_a_node_that_its_host_has_no_more_is_forgotten_once_it_carries_nothing(both, written):
    """As one of bare metal that was deleted: it is neither listed nor counted any more."""
    name = both.add_host()
    [(node, _)] = written.offers(name)
    written.commit(*rows.claim("a server", "now", host=name, node=node, amount=Amount(1, 1, 1)))
    both.app.run(hosts.heard(written.ctx, name, []))
    both.app.run(hosts.forget_gone(written.ctx))
    assert [one for one, _ in written.offers(name)] == [node]
    written.commit(*rows.free_many("a server", [("now", name, node, Amount(1, 1, 1))]))
    tidy(both)
    assert written.offers(name) == []
    both.app.run(both.app.app.program.compute.watch.ask(written.host(name)))
    assert [one for one, _ in written.offers(name)] == [node], "it came back"


def test_a_host_that_is_called_otherwise_today_offers_its_room_once(both, written, monkeypatch):
    """As where its name server does not answer, and its domain is missing from its name."""
    name = both.add_host(vcpus=8)
    [(node, _)] = written.offers(name)
    written.commit(*rows.claim("a server", "now", host=name, node=node, amount=Amount(8, 1, 1)))
    host, life = (
        written.host(name),
        both.app.app.program.compute.watch._hands.drivers["simulated"].life,
    )
    capacity = type(life).capacity

    async def renamed(self, at):
        found = await capacity(self, at)
        if at.host != name:
            return found
        return [msgspec.structs.replace(one, node=f"{one.node}.example") for one in found]

    monkeypatch.setattr(type(life), "capacity", renamed)
    watch = both.app.app.program.compute.watch
    assert both.app.run(watch.ask(host)) is None
    assert written.offers(name) == [(node, 8)]
    written.commit(*rows.free_many("a server", [("now", name, node, Amount(8, 1, 1))]))
    assert both.app.run(watch.ask(host)) is None
    tidy(both)
    assert written.offers(name) == [(f"{node}.example", 8)], "nobody needs the old name"


def test_servers_are_shown_on_their_own_host_though_nodes_of_two_have_one_name(both, written):
    """As hosts that were never given a name."""
    names = [both.add_host(), both.add_host()]
    for name in names:
        written.commit(Op("UPDATE hypervisors SET node = 'localhost' WHERE host = ?", (name,), 1))
    uuid = both.boot(availability_zone=f"nova:{names[0]}")
    path = "/os-hypervisors?hypervisor_hostname_pattern=localhost&with_servers=true"
    found = both.ask("GET", path).json["hypervisors"]
    assert [[one["uuid"] for one in found[at]["servers"]] for at in (0, 1)] == [[uuid], []]


def test_what_a_removed_host_still_says_is_not_written_down(both, written):
    name = both.add_host()
    host = written.host(name)
    assert both.ask("DELETE", f"/hosts/{name}", version=900).status == 204
    watch = both.app.app.program.compute.watch
    assert both.app.run(watch.ask(host)) == "it was removed meanwhile"
    assert written.offers(name) == []


def test_what_a_host_offers_is_written_down_again_if_the_database_went_back(both, written):
    """As when a replica takes over that had not got the last commits."""
    name = both.add_host(vcpus=8)
    watch = both.app.app.program.compute.watch
    both.app.run(watch.round())
    [(node, vcpus)] = written.offers(name)
    written.commit(
        Op("UPDATE hypervisors SET vcpus = 4 WHERE host = ?", (name,), 1),
        Op("UPDATE hosts SET seen_at = seen_at - 1 WHERE name = ?", (name,), 1),
    )
    both.app.run(watch.round())
    assert written.offers(name) == [(node, vcpus)]


def test_hosts_that_nobody_listened_to_are_asked_before_a_server_is_refused(both, written):
    """The database was away, or all workers: servers that were asked for meanwhile are made."""
    both.add_host()
    asking = both.app.app.program.compute.watch._hands.asking

    async def long_ago():
        async with asking.turn:
            await written.store.commit([Op("UPDATE hosts SET seen_at = 1000")])
            asking.at.clear()

    both.app.run(long_ago())
    made = [both.create() for _ in range(3)]
    for uuid in made:
        seen = both.settled(uuid)
        assert seen["status"] == "ACTIVE", str(seen.get("fault"))


@pytest.mark.parametrize("asked_at", ["clear", "ahead"])
def test_hosts_that_were_asked_by_a_clock_that_was_set_back_since_are_asked_again(
    both, written, asked_at
):
    name = both.add_host()
    hands = both.app.app.program.compute.watch._hands

    async def story():
        async with hands.asking.turn:
            await written.store.commit([Op("UPDATE hosts SET seen_at = 1000")])
            hands.asking.at.clear()
            if asked_at == "ahead":
                hands.asking.at[name] = hands.ctx.door.clock() + 3600.0
        await ask_silent(hands)
        return await hosts.silent(hands.ctx)

    assert name not in [host.name for host in both.app.run(story())]
