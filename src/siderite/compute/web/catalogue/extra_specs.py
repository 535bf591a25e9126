"""What extra specs may say, from 2.86 on: one that is misspelt would be passed over in silence."""

import re

from siderite.compute.web import forms

CHECKED = 86
_FLAG = "(?i:true|false|yes|no|on|off|1|0)"
_NUMBER = "[0-9]{1,18}"
_WORD = "[A-Za-z0-9_.,-]+"
_KNOWN = tuple(
    (re.compile(name), re.compile(value), meaning)
    for name, value, meaning in (
        (r"trait[0-9]*:[A-Z0-9_]+", "required|forbidden", "required or forbidden"),
        (r"resources[0-9]*:[A-Z0-9_]+", _NUMBER, "a whole number"),
        (r"hw:cpu_policy", "dedicated|shared|mixed", "dedicated, shared or mixed"),
        (r"hw:cpu_thread_policy", "prefer|isolate|require", "prefer, isolate or require"),
        (r"hw:emulator_threads_policy", "isolate|share", "isolate or share"),
        (r"hw:pci_numa_affinity_policy", "required|preferred|legacy|socket",
         "required, preferred, legacy or socket"),
        (r"hw:cpu_(sockets|cores|threads|max_sockets|max_cores|max_threads)", _NUMBER,
         "a whole number"),
        (r"hw:(numa_nodes|numa_mem\.[0-9]+|serial_port_count|maxphysaddr_bits)", _NUMBER,
         "a whole number"),
        (r"hw:redirected_usb_ports", _NUMBER, "a whole number"),
        (r"hw:(numa_cpus\.[0-9]+|cpu_(realtime|dedicated)_mask)", "[0-9,^-]+",
         "numbers of processors"),
        (r"hw:mem_page_size", r"large|small|any|[0-9]+([kKmMgG]i?[bB]?)?", "a size"),
        (r"hw:watchdog_action", "none|pause|poweroff|reset|disabled", "an action"),
        (r"hw:(boot_menu|mem_encryption|pmu|locked_memory|cpu_realtime|hide_hypervisor_id)", _FLAG,
         "true or false"),
        (r"hw:(vif_multiqueue_enabled|virtio_packed_ring|ephemeral_encryption)|hw_rng:allowed",
         _FLAG, "true or false"),
        (r"hw:(tpm_model|tpm_version|tpm_secret_security|maxphysaddr_mode|viommu_model|pmem)",
         _WORD, "a word"),
        (r"hw:(mem_encryption_model|ephemeral_encryption_format|sound_model|usb_model)", _WORD,
         "a word"),
        (r"hw_rng:(rate_bytes|rate_period)|quota:[a-z_]+", "-?" + _NUMBER, "a whole number"),
    )
)  # fmt: skip
_NAMESPACES = re.compile(r"(trait|resources)[0-9]*:.*")


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
            if _NAMESPACES.fullmatch(name):
                raise forms.wrong(
                    "extra_specs", name, "what is behind the colon has A-Z, 0-9 and _ only"
                )
            if name.startswith("hw:"):
                raise forms.wrong(
                    "extra_specs", name, "there is none of this name; is it misspelt?"
                )
