"""The log of usage audits, which old clients ask for. None is made here: what projects used is
told by os-simple-tenant-usage, and each change by its event. So the answer is that of a Nova whose
`instance_usage_audit` is off, as it is delivered: the month that ended last, and no host done.
"""

from datetime import UTC
from datetime import datetime
from typing import TYPE_CHECKING
from typing import Any

from siderite.compute.usecases.fleet import hosts
from siderite.core import shape
from siderite.core.errors import Invalid
from siderite.core.http import Request
from siderite.core.http import Response
from siderite.core.http import Route
from siderite.core.http import reply

if TYPE_CHECKING:
    from siderite.compute.web.service import ComputeService as Service

_FORMS = ("%Y-%m-%d %H:%M:%S", "%Y-%m-%d %H:%M:%S.%f")


def _month(at: datetime) -> datetime:
    return at.replace(day=1, hour=0, minute=0, second=0, microsecond=0)


def _before(month: datetime) -> datetime:
    """The month before."""
    if month.month == 1:
        return month.replace(year=month.year - 1, month=12)
    return month.replace(month=month.month - 1)


def _period(before: datetime) -> tuple[str, str]:
    """The last month that had ended by then."""
    end = _month(before)
    if end == before:
        end = _before(end)
    return str(_before(end)), str(end)


def _log(period: tuple[str, str], names: list[str]) -> dict[str, Any]:
    begin, end = period
    return {
        "period_beginning": begin,
        "period_ending": end,
        "num_hosts": len(names),
        "num_hosts_done": 0,
        "num_hosts_running": 0,
        "num_hosts_not_run": len(names),
        "hosts_not_run": names,
        "total_instances": 0,
        "total_errors": 0,
        "overall_status": f"{f'0 of {len(names)}' if names else 'ALL'} hosts done. 0 errors.",
        "log": {},
    }


async def _answer(service: "Service", noun: str, period: tuple[str, str]) -> Response:
    names = [host.name for host in await hosts.every(service.ctx)]
    return reply({noun: _log(period, names)})


async def index(service: "Service", request: Request) -> Response:
    """GET /os-instance_usage_audit_log"""
    now = datetime.fromtimestamp(service.ctx.door.clock(), UTC).replace(tzinfo=None)
    return await _answer(service, "instance_usage_audit_logs", _period(now))


async def show(service: "Service", request: Request) -> Response:
    """GET /os-instance_usage_audit_log/{before}"""
    return await _answer(service, "instance_usage_audit_log", _asked(request.params[0]))


def _asked(text: str) -> tuple[str, str]:
    for form in _FORMS:
        try:
            return _period(datetime.strptime(text, form))  # noqa: DTZ007 - all of it is UTC
        except ValueError:  # also of a time that has no month before it
            continue
    raise Invalid(f"Invalid timestamp for date {text[:40]}; write it as 2026-01-31 00:00:00.")


def _form(noun: str) -> shape.Shape:
    return lambda: shape.wire({noun: _log(("", ""), [""])})


_ALL = "/v2.1/os-instance_usage_audit_log"
ROUTES = (
    Route("GET", _ALL, index, "usage:read_all", gives=_form("instance_usage_audit_logs")),
    Route("GET", _ALL + "/{before}", show, "usage:read_all",
          gives=_form("instance_usage_audit_log")),
)  # fmt: skip
