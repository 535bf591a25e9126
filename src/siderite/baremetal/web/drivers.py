"""Drivers on the wire: what their cards say."""

from collections.abc import Iterable
from collections.abc import Sequence
from typing import TYPE_CHECKING
from typing import Any

from siderite.baremetal.domain.driver_card import DriverCard
from siderite.baremetal.domain.fields import links
from siderite.baremetal.domain.node import INTERFACES
from siderite.baremetal.usecases import conductors
from siderite.baremetal.web import listing
from siderite.baremetal.web.views import linked
from siderite.baremetal.web.views import with_links
from siderite.core import shape
from siderite.core.errors import Invalid
from siderite.core.errors import NotAcceptable
from siderite.core.errors import NotFound
from siderite.core.errors import Unsupported
from siderite.core.http import Request
from siderite.core.http import Response
from siderite.core.http import raw
from siderite.core.http import reply

if TYPE_CHECKING:
    from siderite.baremetal.web.service import BaremetalService as Service

RAID_SINCE = 12
_LINKS_SINCE, _DYNAMIC_SINCE, _FIELDS_SINCE = 14, 30, 77
_INTERFACES_SINCE = {"storage": 33, "rescue": 38, "bios": 40, "firmware": 86}
_TYPES = ("classic", "dynamic")
_QUERY_SINCE = {"type": _DYNAMIC_SINCE, "detail": _DYNAMIC_SINCE, "fields": _FIELDS_SINCE}

RAID_PROPERTIES = {
    "size_gb": "Size in GiB, a whole number, or MAX for all the space that is left. Required.",
    "raid_level": "RAID level: JBOD, 0, 1, 2, 5, 6, 1+0, 5+0 or 6+0. Required.",
    "controller": "The controller, by the name that the driver knows it by.",
    "disk_type": "hdd or ssd; by default either.",
    "interface_type": "sata, scsi or sas; by default any.",
    "is_root_volume": "true for the one disk that the operating system goes to.",
    "number_of_physical_disks": "How many physical disks to use; by default the fewest possible.",
    "physical_disks": "The physical disks to use, by the names that the driver knows them by.",
    "share_physical_disks": "true if other logical disks may be on the same physical ones.",
    "volume_name": "A name for the volume; by default the driver chooses one.",
}
"""What may be said of a logical disk."""


def _fields(version: int, *, detail: bool) -> list[str]:
    names = ["name", "hosts", "links"]
    if version >= _LINKS_SINCE:
        names.append("properties")
    if version >= _DYNAMIC_SINCE:
        names.append("type")
        if detail:
            for kind in INTERFACES:
                if version >= _INTERFACES_SINCE.get(kind, _DYNAMIC_SINCE):
                    names += [f"default_{kind}_interface", f"enabled_{kind}_interfaces"]
    return names


async def _shown(service: "Service", cards: Iterable[DriverCard]) -> list[dict[str, Any]]:
    there = await conductors.all_of_them(service.ctx)
    return [_whole(card, [host for host in there if host.alive]) for card in cards]


def _whole(card: DriverCard, hosts: list[conductors.Conductor]) -> dict[str, Any]:
    whole: dict[str, Any] = {
        "name": card.name,
        "hosts": [host.hostname for host in hosts if card.name in host.drivers],
        "links": links("drivers", card.name),
        "properties": links("drivers", card.name, "/properties"),
        "type": "dynamic",
    }
    for kind in INTERFACES:
        whole[f"default_{kind}_interface"] = card.interfaces[kind][0]
        whole[f"enabled_{kind}_interfaces"] = list(card.interfaces[kind])
    return whole


def _query(request: Request, known: Sequence[str]) -> dict[str, str]:
    query = dict(request.query)
    for key in query:
        if key not in known:
            raise Invalid(f"Unexpected arguments: {key[:80]}. Drivers take: {', '.join(known)}.")
        if _QUERY_SINCE[key] > request.version:
            raise NotAcceptable(f"{key} needs API version 1.{_QUERY_SINCE[key]}.")
    return query


def _chosen(value: str, version: int) -> list[str]:
    known = _fields(version, detail=True)
    names = [name for name in value.split(",") if name]
    wrong = next((name for name in names if name not in known), None)
    if wrong is not None or not names:
        raise Invalid(
            f"Field(s) {str(wrong)[:80]!r} are not valid; a driver has: {', '.join(known)}."
        )
    return [*names, "links"]


async def index(service: "Service", request: Request) -> Response:
    """GET /v1/drivers"""
    query = _query(request, ("type", "detail", "fields"))
    detail = "detail" in query and listing.flag("detail", query["detail"])
    if detail and "fields" in query:
        raise Invalid("Can't fetch a subset of fields with 'detail' set.")
    if query.get("type", "dynamic") not in _TYPES:
        raise Invalid(f'"type" must be one of {", ".join(_TYPES)}, if specified.')
    names = _fields(request.version, detail=detail)
    if "fields" in query:
        names = _chosen(query["fields"], request.version)
    cards = service.ctx.cards if query.get("type") != "classic" else {}
    found = await _shown(service, [card for _, card in sorted(cards.items())])
    drivers = [{name: driver[name] for name in driver if name in names} for driver in found]
    return raw(with_links({"drivers": drivers}, service.base(request)))


async def show(service: "Service", request: Request) -> Response:
    """GET /v1/drivers/{driver}"""
    query = _query(request, ("fields",))
    names = _fields(request.version, detail=True)
    if "fields" in query:
        names = _chosen(query["fields"], request.version)
    (driver,) = await _shown(service, [_card(service, request)])
    return raw(
        with_links({name: driver[name] for name in driver if name in names}, service.base(request))
    )


def _card(service: "Service", request: Request) -> DriverCard:
    name = request.params[0]
    card = service.ctx.cards.get(name)
    if card is None:
        raise NotFound(
            f"Could not find the following driver(s) or hardware type(s): {name[:80]}; there are:"
            f" {', '.join(sorted(service.ctx.cards))}."
        )
    return card


async def properties(service: "Service", request: Request) -> Response:
    """GET /v1/drivers/{driver}/properties"""
    return reply(_card(service, request).described)


async def raid_properties(service: "Service", request: Request) -> Response:
    """GET /v1/drivers/{driver}/raid/logical_disk_properties"""
    if request.version < RAID_SINCE:
        raise NotAcceptable(f"RAID needs API version 1.{RAID_SINCE}.")
    card = _card(service, request)
    if not card.has("raid"):
        raise NotFound(f"Driver {card.name} does not support raid (disabled or not implemented).")
    return reply(RAID_PROPERTIES)


async def vendor_methods(service: "Service", request: Request) -> Response:
    """GET /v1/drivers/{driver}/vendor_passthru/methods"""
    _card(service, request)
    return reply({})


async def vendor_passthru(service: "Service", request: Request) -> Response:
    """Any method at /v1/drivers/{driver}/vendor_passthru"""
    card = _card(service, request)
    raise no_vendor_method(request, card.name)


def no_vendor_method(request: Request, driver: str) -> Unsupported:
    """The refusal of a vendor's method, of which no driver here has any."""
    named = [value for key, value in request.query if key == "method"] or request.params[1:]
    if not named:
        return Unsupported("Missing mandatory parameter: method")
    return Unsupported(f"Driver {driver} has no vendor method {named[0][:80]!r}; it has none.")


def form() -> shape.Json:
    """The form of a driver of which some fields may be shown."""
    card = shape.made_up(DriverCard, interfaces=dict.fromkeys(INTERFACES, ("",)))
    host = shape.made_up(conductors.Conductor, drivers=[card.name])
    return shape.whole(linked(_whole(card, [host])))


def page_form() -> shape.Json:
    """The form of the list of drivers."""
    return shape.listed("drivers", form())


def sentences_form() -> shape.Json:
    """The form of what drivers want to know: a sentence for each key."""
    return shape.record({}, others=shape.text())


def raid_form() -> shape.Json:
    """The form of what may be said of a logical disk."""
    return shape.wire(RAID_PROPERTIES)


def no_methods_form() -> shape.Json:
    """The form of a list of vendors' methods, of which there are none."""
    return shape.record({})
