"""The names that fields have in the payloads of facts: what there is to look for in them."""

from siderite.baremetal.domain.facts import KINDS
from siderite.baremetal.domain.facts import of_nodes

FIELDS = frozenset({
    *of_nodes(), *(name for kind in KINDS for name in kind.fields),
    # What stands beside a node's fields when it moves, its power changes, a hook holds it.
    "by", "code", "deadline", "event", "from_policy", "from_power", "hold", "hook", "hook_name",
    "on_deadline", "previous_provision_state", "previous_target_provision_state", "reason",
    "server", "since", "step", "tag", "to_policy", "to_power",
})  # fmt: skip
