"""The extra specs that Nova knows are taken, and what is beside them in their namespaces is not."""

import pytest

from siderite.compute.web.catalogue.extra_specs import check
from siderite.core.errors import Invalid

_TAKEN = (
    ("hw:cpu_realtime", "yes"), ("hw:cpu_realtime_mask", "^0-1"), ("hw:hide_hypervisor_id", "T"),
    ("hw:cpu_policy", "mixed"), ("hw:cpu_thread_policy", "prefer"),
    ("hw:emulator_threads_policy", "share"), ("hw:cpu_dedicated_mask", "0-3,^2"),
    ("hw:mem_page_size", "1TiB"), ("hw:mem_page_size", "2048"), ("hw:numa_nodes", "1"),
    ("hw:numa_cpus.1", "4-7"), ("hw:numa_mem.1", "2048"), ("hw:pci_numa_affinity_policy", "socket"),
    ("hw:cpu_sockets", "2"), ("hw:max_cpu_sockets", "2"), ("hw:max_cpu_cores", "2"),
    ("hw:max_cpu_threads", "2"), ("hw:cpu_max_sockets", "2"), ("hw:boot_menu", "off"),
    ("hw:mem_encryption", "true"), ("hw:mem_encryption_model", "amd-sev-es"),
    ("hw:pmem", "2GB,4GB"), ("hw:pmu", "0"), ("hw:serial_port_count", "0"),
    ("hw:tpm_model", "tpm-tis"),
    ("hw:tpm_version", "2.0"), ("hw:tpm_secret_security", "deployment"),
    ("hw:watchdog_action", "poweroff"), ("hw:viommu_model", "smmuv3"),
    ("hw:virtio_packed_ring", "true"), ("hw:vif_multiqueue_enabled", "true"),
    ("hw:locked_memory", "true"), ("hw:maxphysaddr_mode", "emulate"), ("hw:maxphysaddr_bits", "42"),
    ("hw:redirected_usb_ports", "15"), ("hw_rng:allowed", "n"), ("hw_rng:rate_bytes", "0"),
    ("hw_rng:rate_period", "5"), ("hw_video:ram_max_mb", "64"), ("hide_hypervisor_id", "true"),
    ("group_policy", "isolate"), ("os:secure_boot", "required"), ("accel:device_profile", "gpu"),
    ("pci_passthrough:alias", "a1:2, gpu:1"), ("vmware:hw_version", "vmx-13"),
    ("vmware:storage_policy", "gold"), ("quota:cpu_shares", "2048"), ("quota:cpu_quota", "-1"),
    ("quota:disk_total_iops_sec", "100"), ("quota:vif_outbound_burst", "1"),
    ("quota:memory_limit", "0"), ("quota:disk_io_shares_level", "custom"),
    ("trait_nic-1:CUSTOM_FAST", "required"), ("resources2:VGPU", "1"),
    ("aggregate_instance_extra_specs:ssd", "<or> yes <or> true"),
    ("capabilities:boot_mode", "uefi"), ("capabilities:cpu_info:arch", "x86_64"),
    ("preemptible", "true"), ("mine:own", "perhaps"),
)  # fmt: skip
_REFUSED = (
    ("hw:max_sockets", "2"), ("hw:cpu_sockets", "0"), ("hw:numa_nodes", "0"),
    ("hw:numa_cpus.0", "0-"), ("hw:mem_page_size", "2m"), ("hw:tpm_version", "3.0"),
    ("hw:tpm_model", "crb"), ("hw:viommu_model", "amd"), ("hw:redirected_usb_ports", "16"),
    ("hw_rng:allow", "true"), ("hw_video:ram_mb", "64"), ("hw_video:ram_max_mb", "-1"),
    ("os:secureboot", "required"), ("os:secure_boot", "optional"), ("group_policy", "isolated"),
    ("hide_hypervisor_id", "perhaps"), ("pci_passthrough:aliases", "a1:2"),
    ("pci_passthrough:alias", "a1"), ("quota:cpu_share", "1"), ("quota:cpu_shares", "-1"),
    ("quota:disk_read_bytes", "1"), ("accel:profile", "gpu"), ("vmware:version", "13"),
    ("aggregate_instance_extra_specs:", "x"), ("trait1:lower", "required"),
    ("resources_a:gold", "1"),
)  # fmt: skip


@pytest.mark.parametrize(("name", "value"), _TAKEN)
def test_what_nova_knows_and_what_is_nobodys_is_taken(name: str, value: str) -> None:
    check({name: value}, 86)


@pytest.mark.parametrize(("name", "value"), _REFUSED)
def test_what_is_misspelt_in_a_known_namespace_is_refused_by_its_name(
    name: str, value: str
) -> None:
    with pytest.raises(Invalid) as refused:
        check({name: value}, 86)
    assert name in str(refused.value)
    check({name: value}, 85)
