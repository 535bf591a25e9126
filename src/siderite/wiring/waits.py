"""All that waits by the computer's clock, in an embedded database."""

from siderite.baremetal.usecases import conductors
from siderite.baremetal.usecases.life import progress
from siderite.baremetal.usecases.power import power_schedule
from siderite.compute.usecases.fleet import hosts
from siderite.core import work
from siderite.events import monitor
from siderite.events.webhooks import deliveries

SHIFTS = (
    work.shift, progress.shift, power_schedule.shift, conductors.shift, hosts.shift,
    deliveries.shift, monitor.shift,
)  # fmt: skip
