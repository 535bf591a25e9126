"""Keypairs."""

import asyncio
import base64
import os
import shutil
import subprocess
from itertools import accumulate
from pathlib import Path

import pytest

from tests.compute.records.world import World
from tests.support.stories import Tell

KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIHQ9dGh1bWJzIHVwIGZvciB0ZXN0IGtleXMgMTIz someone@here"
CERTIFICATE = (
    "-----BEGIN CERTIFICATE-----\n"
    + base64.b64encode(b"\x30\x03\x02\x01\x05").decode()
    + "\n-----END CERTIFICATE-----\n"
)


def test_a_key_is_imported_shown_and_forgotten(tell: Tell) -> None:
    async def story(here: World) -> None:
        body = {"keypair": {"name": "k", "public_key": KEY}}
        made = await here.ask("POST", "/os-keypairs", body, version=10)
        assert made.status == 201
        key = made.json["keypair"]
        assert set(key) == {"name", "public_key", "fingerprint", "type", "user_id"}
        assert (key["type"], key["public_key"]) == ("ssh", KEY)
        shown = (await here.get("/os-keypairs/k", 10))["keypair"]
        assert set(shown) == set(key) | {
            "id", "created_at", "updated_at", "deleted", "deleted_at",
        }  # fmt: skip
        listed = (await here.get("/os-keypairs", 10))["keypairs"]
        assert [set(one["keypair"]) for one in listed] == [
            {"name", "public_key", "fingerprint", "type"}
        ]
        again = await here.ask("POST", "/os-keypairs", body, version=10)
        assert again.status == 409 and "already exists" in again.body.decode()
        assert (await here.ask("DELETE", "/os-keypairs/k", version=2)).status == 204
        assert (await here.ask("DELETE", "/os-keypairs/k", version=2)).status == 404

    tell(story)


def test_below_2_2_keys_have_no_type_and_other_codes(tell_once: Tell) -> None:
    async def story(here: World) -> None:
        made = await here.ask("POST", "/os-keypairs", {"keypair": {"name": "k", "public_key": KEY}})
        assert made.status == 200 and "type" not in made.json["keypair"]
        assert "type" not in (await here.get("/os-keypairs/k"))["keypair"]
        typed = {"keypair": {"name": "k2", "public_key": KEY, "type": "ssh"}}
        assert (await here.ask("POST", "/os-keypairs", typed)).status == 400
        assert (await here.ask("DELETE", "/os-keypairs/k")).status == 202

    tell_once(story)


def test_the_fingerprint_is_that_of_ssh_keygen(tell_once: Tell, tmp_path: Path) -> None:
    async def story(here: World) -> None:
        made = await here.ask("POST", "/os-keypairs", {"keypair": {"name": "k"}}, version=2)
        key = made.json["keypair"]
        assert "PRIVATE KEY" in key["private_key"]
        file = tmp_path / "k"
        file.write_text(key["private_key"])
        file.chmod(0o600)
        public = subprocess.run(
            ["ssh-keygen", "-y", "-f", file], capture_output=True, text=True, check=True
        ).stdout
        assert public.split()[1] == key["public_key"].split()[1]
        file.with_suffix(".pub").write_text(key["public_key"])
        told = subprocess.run(
            ["ssh-keygen", "-l", "-E", "md5", "-f", file.with_suffix(".pub")],
            capture_output=True, text=True, check=True,
        ).stdout  # fmt: skip
        assert told.split()[1] == "MD5:" + key["fingerprint"]
        assert "private_key" not in (await here.get("/os-keypairs/k", 2))["keypair"]

    tell_once(story)


def test_however_many_keys_one_wants_at_once_two_are_made_at_a_time(
    tell_once: Tell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    notes, real = tmp_path / "notes", shutil.which("ssh-keygen")
    stand_in = tmp_path / "bin" / "ssh-keygen"
    stand_in.parent.mkdir()
    stand_in.write_text(f'#!/bin/sh\nprintf + >>{notes}\n{real} "$@"\nprintf - >>{notes}\n')
    stand_in.chmod(0o755)
    monkeypatch.setenv("PATH", str(stand_in.parent), prepend=os.pathsep)

    async def story(here: World) -> None:
        bodies = [{"keypair": {"name": f"k{number}"}} for number in range(6)]
        made = await asyncio.gather(*(here.ask("POST", "/os-keypairs", one) for one in bodies))
        assert [one.status for one in made] == [200] * 6
        under_way = list(accumulate(1 if note == "+" else -1 for note in notes.read_text()))
        assert (len(under_way), max(under_way)) == (12, 2)

    tell_once(story)


def test_from_2_92_keys_are_only_imported(tell_once: Tell) -> None:
    async def story(here: World) -> None:
        refused = await here.ask("POST", "/os-keypairs", {"keypair": {"name": "k"}}, version=92)
        assert refused.status == 400 and "public_key" in refused.body.decode()
        body = {"keypair": {"name": "me@here.org", "public_key": KEY}}
        assert (await here.ask("POST", "/os-keypairs", body, version=91)).status == 400
        assert (await here.ask("POST", "/os-keypairs", body, version=92)).status == 201

    tell_once(story)


def test_certificates_are_imported_not_made(tell_once: Tell) -> None:
    async def story(here: World) -> None:
        body = {"keypair": {"name": "c", "type": "x509", "public_key": CERTIFICATE}}
        made = await here.ask("POST", "/os-keypairs", body, version=2)
        assert (made.status, len(made.json["keypair"]["fingerprint"])) == (201, 59)
        body = {"keypair": {"name": "d", "type": "x509"}}
        assert (await here.ask("POST", "/os-keypairs", body, version=2)).status == 400

    tell_once(story)


def test_keys_are_a_users_own(tell: Tell) -> None:
    async def story(here: World) -> None:
        name, mia, project = await here.app.person("member")
        _, other, _ = await here.app.person("member", project)
        body = {"keypair": {"name": "mine", "public_key": KEY}}
        made = await here.ask("POST", "/os-keypairs", body, version=10, token=mia)
        user = made.json["keypair"]["user_id"]
        assert (await here.ask("GET", "/os-keypairs/mine", token=other)).status == 404
        asked = f"/os-keypairs?user_id={user}"
        assert (await here.ask("GET", asked, version=10, token=other)).status == 403
        assert len((await here.get(asked, 10))["keypairs"]) == 1, "administrators may"
        assert (await here.get(asked, 9))["keypairs"] == [], "but not below 2.10"
        assert name

    tell(story)


def test_keys_come_in_pages_by_name(tell: Tell) -> None:
    async def story(here: World) -> None:
        for name in ("c", "a", "b"):
            await here.ask("POST", "/os-keypairs", {"keypair": {"name": name, "public_key": KEY}})
        page = await here.get("/os-keypairs?limit=2", 35)
        assert [one["keypair"]["name"] for one in page["keypairs"]] == ["a", "b"]
        assert "marker=b" in page["keypairs_links"][0]["href"]
        page = await here.get("/os-keypairs?limit=2&marker=b", 35)
        assert [one["keypair"]["name"] for one in page["keypairs"]] == ["c"]
        assert "keypairs_links" not in page
        assert (await here.ask("GET", "/os-keypairs?marker=x", version=35)).status == 400
        assert (await here.ask("GET", "/os-keypairs?limit=-1", version=35)).status == 400
        assert (await here.ask("GET", "/os-keypairs?colour=1", version=75)).status == 400
        assert len((await here.get("/os-keypairs?limit=1", 34))["keypairs"]) == 3

    tell(story)


def test_there_is_a_limit(tell: Tell) -> None:
    async def story(here: World) -> None:
        project = (await here.app.ask("GET", "/identity/v3/projects?name=admin")).json
        uuid = project["projects"][0]["id"]
        await here.ask("PUT", f"/os-quota-sets/{uuid}", {"quota_set": {"key_pairs": 1}})
        for name, status in (("a", 200), ("b", 403)):
            body = {"keypair": {"name": name, "public_key": KEY}}
            assert (await here.ask("POST", "/os-keypairs", body)).status == status

    tell(story)


def test_who_comes_second_to_delete_a_key_finds_none(tell: Tell) -> None:
    async def story(here: World) -> None:
        body = {"keypair": {"name": "k", "public_key": KEY}}
        assert (await here.ask("POST", "/os-keypairs", body, version=10)).status == 201
        both = await asyncio.gather(*(here.ask("DELETE", "/os-keypairs/k") for _ in range(2)))
        assert sorted(one.status for one in both) == [202, 404]

    tell(story)
