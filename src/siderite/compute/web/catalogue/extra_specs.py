"""What extra specs may say, from 2.86 on: one that is misspelt would be passed over in silence.

The names and values are those that Nova checks. Outside of its namespaces everything goes, and
so do `capabilities`, which are the machines' own words.
"""

import re

from siderite.compute.web import forms

CHECKED = 86
_FLAG = r"\s*(?i:true|false|yes|no|on|off|t|f|y|n|1|0)\s*"
_NUMBER = "[0-9]{1,18}"
_SIGNED = "-?[0-9]{1,18}"
_SOME = "0*[1-9][0-9]{0,17}"
_WORD = "[A-Za-z0-9_.,-]+"
_PROCESSORS = r"\^?[0-9]+(-[0-9]+)?(,\^?[0-9]+(-[0-9]+)?)*"
_GROUP = "([A-Za-z0-9_-]{1,64})?"
_KNOWN = tuple(
    (re.compile(name), re.compile(value, re.DOTALL), meaning)
    for name, value, meaning in (
        (rf"trait{_GROUP}:[A-Z0-9_]+", "required|forbidden", "required or forbidden"),
        (rf"resources{_GROUP}:[A-Z0-9_]+", _NUMBER, "a whole number"),
        (r"group_policy", "isolate|none", "isolate or none"),
        (r"hw:cpu_policy", "dedicated|shared|mixed", "dedicated, shared or mixed"),
        (r"hw:cpu_thread_policy", "prefer|isolate|require", "prefer, isolate or require"),
        (r"hw:emulator_threads_policy", "isolate|share", "isolate or share"),
        (r"hw:pci_numa_affinity_policy", "required|preferred|legacy|socket",
         "required, preferred, legacy or socket"),
        (r"hw:(cpu_|cpu_max_|max_cpu_)(sockets|cores|threads)", _SOME, "a whole number from 1"),
        (r"hw:(numa_nodes|numa_mem\.[0-9]+)", _SOME, "a whole number from 1"),
        (r"hw:(serial_port_count|maxphysaddr_bits)", _NUMBER, "a whole number"),
        (r"hw:redirected_usb_ports", "0*([0-9]|1[0-5])", "a whole number from 0 to 15"),
        (r"hw:(numa_cpus\.[0-9]+|cpu_(realtime|dedicated)_mask)", _PROCESSORS,
         "numbers of processors, as 0-3,^2"),
        (r"hw:mem_page_size", r"large|small|any|[0-9]+([kKMGT]i?)?(b|bit|B)?",
         "large, small, any or a size, as 2MB"),
        (r"hw:mem_encryption_model", "amd-sev|amd-sev-es", "amd-sev or amd-sev-es"),
        (r"hw:maxphysaddr_mode", "passthrough|emulate", "passthrough or emulate"),
        (r"hw:tpm_model", "tpm-tis|tpm-crb", "tpm-tis or tpm-crb"),
        (r"hw:tpm_version", r"1\.2|2\.0", "1.2 or 2.0"),
        (r"hw:tpm_secret_security", "user|host|deployment", "user, host or deployment"),
        (r"hw:viommu_model", "intel|smmuv3|virtio|auto", "intel, smmuv3, virtio or auto"),
        (r"hw:watchdog_action", "none|pause|poweroff|reset|disabled",
         "none, pause, poweroff, reset or disabled"),
        (r"hw:(boot_menu|mem_encryption|pmu|locked_memory|cpu_realtime)", _FLAG, "true or false"),
        (r"hw:(vif_multiqueue_enabled|virtio_packed_ring|ephemeral_encryption)", _FLAG,
         "true or false"),
        (r"(hw:)?hide_hypervisor_id|hw_rng:allowed", _FLAG, "true or false"),
        (r"hw:(ephemeral_encryption_format|sound_model|usb_model|pmem)", _WORD, "a word"),
        (r"hw_rng:(rate_bytes|rate_period)|hw_video:ram_max_mb", _NUMBER, "a whole number"),
        (r"os:secure_boot", "disabled|required", "disabled or required"),
        (r"pci_passthrough:alias", r"[^:]+:[0-9]+(\s*,\s*[^:,]+:[0-9]+)*",
         "names with how many of each, as gpu:1"),
        (r"accel:device_profile|vmware:(hw_version|storage_policy)", ".*", "a text"),
        (r"quota:(cpu_(shares|period)|disk_(read|write|total)_(bytes|iops)_sec)", _NUMBER,
         "a whole number"),
        (r"quota:vif_(inbound|outbound)_(average|peak|burst)", _NUMBER, "a whole number"),
        (r"quota:cpu_quota", _SIGNED, "a whole number"),
        (r"quota:(cpu|memory|disk_io|vif)_(limit|reservation|shares_share)", _SIGNED,
         "a whole number"),
        (r"quota:(cpu|memory|disk_io|vif)_shares_level", ".*", "a text"),
        (r"aggregate_instance_extra_specs:.+", ".*", "a text"),
    )
)  # fmt: skip
_GROUPED = re.compile(rf"(trait|resources){_GROUP}:.*")
_NAMESPACES = frozenset(
    {"accel", "aggregate_instance_extra_specs", "hw", "hw_rng", "hw_video", "os",
     "pci_passthrough", "quota", "vmware"}
)  # fmt: skip


def check(specs: dict[str, str], version: int) -> None:
    """Refuse names and values that mean nothing."""
    if version < CHECKED:
        return
    for name, value in specs.items():
        for known, form, meaning in _KNOWN:
            if known.fullmatch(name):
                if not form.fullmatch(value):
                    raise forms.wrong(name, value, f"it must be {meaning}")
                break
        else:
            _check_unknown(name)


def _check_unknown(name: str) -> None:
    if _GROUPED.fullmatch(name):
        raise forms.wrong("extra_specs", name, "what is behind the colon has A-Z, 0-9 and _ only")
    space, colon, _ = name.partition(":")
    if colon and space in _NAMESPACES:
        raise forms.wrong("extra_specs", name, "there is none of this name; is it misspelt?")
