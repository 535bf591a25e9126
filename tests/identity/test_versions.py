"""Version documents."""

from tests.identity.world import URL
from tests.identity.world import World
from tests.identity.world import story


@story
async def test_the_root_offers_v3_with_and_without_a_slash(here: World) -> None:
    for path in ("", "/"):
        answer = await here.http.get(URL + "/identity" + path)
        assert answer.status_code == 300
        (version,) = answer.json()["versions"]["values"]
        assert version["id"].startswith("v3.")
        assert version["status"] == "stable"
        assert version["links"] == [{"rel": "self", "href": URL + "/identity/v3/"}]


@story
async def test_v3_describes_itself_with_and_without_a_slash(here: World) -> None:
    for path in ("/v3", "/v3/"):
        answer = await here.call("GET", path, None, "")
        assert answer.status_code == 200
        assert answer.json()["version"]["status"] == "stable"
