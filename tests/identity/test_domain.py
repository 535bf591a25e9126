"""Pure values."""

from siderite.core.who import Who
from siderite.identity.domain import ROLES
from siderite.identity.domain import effective
from siderite.identity.domain import fixed_id
from siderite.identity.policy import RULES
from siderite.identity.policy import allows
from siderite.identity.throttle import FREE
from siderite.identity.throttle import MAX_DELAY_S
from siderite.identity.throttle import Throttle
from siderite.identity.tokens import new_token
from siderite.identity.tokens import token_hash
from siderite.identity.web.routes import ROUTES


def test_admin_implies_manager_implies_member_implies_reader() -> None:
    assert effective(["admin"]) == {"admin", "manager", "member", "reader"}
    assert effective(["manager"]) == {"manager", "member", "reader"}
    assert effective(["manager"], {"manager"}) == {"manager"}
    assert effective(["admin"], {"manager"}) == {"admin", "manager", "member", "reader"}
    assert effective(["member"]) == {"member", "reader"}
    assert effective(["service"]) == {"service"}
    assert effective(["added", "reader"]) == {"added", "reader"}


def test_ids_of_fixed_things_never_change() -> None:
    assert fixed_id("role/admin") == next(r.id for r in ROLES if r.name == "admin")
    assert fixed_id("role/admin") == "ec1256257ac05b47bbde39abe5bfcb3f"
    assert len({role.id for role in ROLES}) == 5


def test_every_route_names_a_rule_that_exists() -> None:
    assert {route.policy for route in ROUTES} - {"public"} <= RULES.keys()


def test_only_version_documents_and_logging_in_are_public() -> None:
    public = {(route.method, route.path) for route in ROUTES if route.policy == "public"}
    assert public == {("GET", "/"), ("GET", "/v3"), ("POST", "/v3/auth/tokens")}


def test_every_change_but_of_ones_own_secrets_and_tokens_is_for_admins() -> None:
    others = {
        (route.method, route.path)
        for route in ROUTES
        if route.method != "GET" and route.policy != "admin"
    }
    assert others == {
        ("POST", "/v3/auth/tokens"),
        ("DELETE", "/v3/auth/tokens"),
        ("POST", "/v3/users/{user_id}/password"),
        ("POST", "/v3/users/{user_id}/application_credentials"),
        ("DELETE", "/v3/users/{user_id}/application_credentials/{credential_id}"),
    }


def test_a_reader_of_one_project_does_not_read_the_system() -> None:
    of_project = Who("u", "u", "p", "p", frozenset({"reader"}))
    of_system = Who("u", "u", None, None, frozenset({"reader"}), system=True)
    assert not allows("reader", of_project, ())
    assert allows("reader", of_system, ())
    assert not allows("admin", of_system, ())


def test_the_eleventh_failure_in_a_row_waits_and_waiting_has_a_bound() -> None:
    throttle = Throttle()
    assert [throttle.failed("mia") for _ in range(FREE)] == [0.0] * FREE
    waits = [throttle.failed("mia") for _ in range(100)]
    assert waits[:4] == [0.1, 0.2, 0.4, 0.8]
    assert waits == sorted(waits)
    assert waits[-1] == MAX_DELAY_S
    assert throttle.failed("ben") == 0.0


def test_a_success_forgets_the_failures() -> None:
    throttle = Throttle()
    for _ in range(50):
        throttle.failed("mia")
    throttle.succeeded("mia")
    assert throttle.failed("mia") == 0.0


def test_a_flood_of_names_does_not_fill_the_memory() -> None:
    throttle = Throttle()
    for number in range(10_000):
        throttle.failed(f"name-{number}")
    assert len(throttle._failures) <= 4096


def test_a_token_is_32_random_bytes_and_its_hash_is_not_it() -> None:
    token = new_token()
    assert len(token) == 43
    assert token != new_token()
    assert token not in (token_hash(token) or "")


def test_what_cannot_be_a_token_has_no_hash() -> None:
    assert token_hash("") is None
    assert token_hash("x" * 256) is None
    assert token_hash("\ud800") is None
    assert token_hash("tökén") is None
