"""Quotas and limits."""

import asyncio

from tests.compute.records.world import World
from tests.support.stories import Tell

OURS = {
    "instances", "cores", "ram", "key_pairs", "metadata_items", "server_groups",
    "server_group_members",
}  # fmt: skip
NETWORK = {"fixed_ips", "floating_ips", "security_groups", "security_group_rules"}
FILES = {"injected_files", "injected_file_content_bytes", "injected_file_path_bytes"}


def test_the_keys_are_those_of_the_version(tell_once: Tell) -> None:
    async def story(here: World) -> None:
        for version, keys in ((1, OURS | NETWORK | FILES), (36, OURS | FILES), (57, OURS)):
            for path in ("", "/defaults", "/detail"):
                shown = (await here.get(f"/os-quota-sets/p{path}", version))["quota_set"]
                assert set(shown) == keys | {"id"}, (version, path)
        detail = (await here.get("/os-quota-sets/p/detail", 57))["quota_set"]
        assert detail["cores"] == {"limit": 20, "in_use": 0, "reserved": 0}

    tell_once(story)


def test_limits_are_set_for_a_project_and_forgotten(tell: Tell) -> None:
    async def story(here: World) -> None:
        body = {"quota_set": {"cores": 5, "ram": -1, "instances": "7"}}
        changed = await here.ask("PUT", "/os-quota-sets/p", body, version=57)
        assert changed.status == 200 and set(changed.json["quota_set"]) == OURS
        shown = (await here.get("/os-quota-sets/p", 57))["quota_set"]
        assert (shown["cores"], shown["ram"], shown["instances"]) == (5, -1, 7)
        assert (await here.get("/os-quota-sets/q", 57))["quota_set"]["cores"] == 20
        assert (await here.ask("DELETE", "/os-quota-sets/p")).status == 202
        assert (await here.get("/os-quota-sets/p", 57))["quota_set"]["cores"] == 20

    tell(story)


def test_the_defaults_are_a_quota_class(tell: Tell) -> None:
    async def story(here: World) -> None:
        path = "/os-quota-class-sets/default"
        body = {"quota_class_set": {"cores": 99}}
        assert (await here.ask("PUT", path, body, version=57)).status == 200
        assert (await here.get(path, 57))["quota_class_set"]["cores"] == 99
        assert (await here.get("/os-quota-sets/p", 57))["quota_set"]["cores"] == 99
        assert "server_groups" not in (await here.get(path, 49))["quota_class_set"]
        assert "fixed_ips" not in (await here.get(path, 50))["quota_class_set"]

    tell(story)


def test_no_other_quota_class_seems_to_be_set(tell: Tell) -> None:
    async def story(here: World) -> None:
        path = "/os-quota-class-sets/gold"
        body = {"quota_class_set": {"cores": 99}}
        put = await here.ask("PUT", path, body, version=57)
        assert put.status == 400, put
        assert "'default'" in put.json["badRequest"]["message"]
        assert (await here.get(path, 57))["quota_class_set"]["cores"] == 20

    tell(story)


def test_a_quota_class_limits_groups_before_it_shows_them(tell: Tell) -> None:
    """`nova quota-class-update --server-groups` at any version."""

    async def story(here: World) -> None:
        path = "/os-quota-class-sets/default"
        body = {"quota_class_set": {"server_groups": 7, "server_group_members": 8, "cores": 9}}
        put = await here.ask("PUT", path, body, version=49)
        assert put.status == 200
        assert put.json["quota_class_set"]["cores"] == 9
        assert "server_groups" not in put.json["quota_class_set"]
        shown = (await here.get(path, 50))["quota_class_set"]
        assert (shown["server_groups"], shown["server_group_members"]) == (7, 8)

    tell(story)


def test_a_limit_below_what_is_used_must_be_forced(tell: Tell) -> None:
    async def story(here: World) -> None:
        from siderite.compute.store import use

        await here.app.program.store.commit([use("p", instances=3, cores=6, ram_mib=512)])
        refused = await here.ask("PUT", "/os-quota-sets/p", {"quota_set": {"cores": 5}})
        assert refused.status == 400 and "already used" in refused.body.decode()
        body = {"quota_set": {"cores": 5, "force": True}}
        assert (await here.ask("PUT", "/os-quota-sets/p", body)).status == 200
        detail = (await here.get("/os-quota-sets/p/detail", 57))["quota_set"]
        assert detail["cores"] == {"limit": 5, "in_use": 6, "reserved": 0}
        limits = (await here.get("/limits?tenant_id=p", 57))["limits"]["absolute"]
        assert (limits["totalCoresUsed"], limits["maxTotalCores"]) == (6, 5)

    tell(story)


def test_limits_lose_keys_with_versions(tell_once: Tell) -> None:
    async def story(here: World) -> None:
        now = set((await here.get("/limits", 57))["limits"]["absolute"])
        assert len(now) == 11
        files = {"maxPersonality", "maxPersonalitySize"}
        assert set((await here.get("/limits", 39))["limits"]["absolute"]) == now | files
        image = {"maxImageMeta"}
        assert set((await here.get("/limits", 36))["limits"]["absolute"]) == now | files | image
        assert len((await here.get("/limits", 35))["limits"]["absolute"]) == 19
        assert (await here.get("/limits"))["limits"]["rate"] == []

    tell_once(story)


def test_members_see_their_own_and_set_nothing(tell_once: Tell) -> None:
    async def story(here: World) -> None:
        _, token, project = await here.app.person("member")
        for path in ("", "/detail"):
            own, other = (f"/os-quota-sets/{p}{path}" for p in (project, "other"))
            assert (await here.ask("GET", own, token=token)).status == 200
            assert (await here.ask("GET", other, token=token)).status == 403
        body = {"quota_set": {"cores": 1000}}
        for method, sent in (("PUT", [body]), ("DELETE", [])):
            path = f"/os-quota-sets/{project}"
            assert (await here.ask(method, path, *sent, token=token)).status == 403
        assert (await here.ask("GET", "/limits?tenant_id=other", token=token)).status == 403
        assert (await here.ask("GET", f"/limits?tenant_id={project}", token=token)).status == 200

    tell_once(story)


def test_many_at_once_do_not_pass_the_quota(tell_once: Tell) -> None:
    key = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIEeP1fXcJ0Hn1qgV0o0b6b7n1sV4lQ2m3r5t7u9w1x3z"

    async def story(here: World) -> None:
        limits = {"quota_class_set": {"server_groups": 2, "key_pairs": 2}}
        put = await here.ask("PUT", "/os-quota-class-sets/default", limits, version=57)
        assert put.status == 200
        for path, body in (
            ("/os-server-groups", lambda n: {"server_group": {"name": n, "policy": "affinity"}}),
            ("/os-keypairs", lambda n: {"keypair": {"name": n, "public_key": key}}),
        ):
            asked = (here.ask("POST", path, body(f"n{at}"), version=64) for at in range(6))
            codes = sorted(answer.status // 100 for answer in await asyncio.gather(*asked))
            assert codes == [2, 2, 4, 4, 4, 4], path

    tell_once(story)
