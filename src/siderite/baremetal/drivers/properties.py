"""What a node's driver_info can say to each driver, in words: the drivers' cards show it."""

_RAMDISK = {
    "deploy_kernel": "URL of the kernel of the agent's ramdisk; by default the configured one.",
    "deploy_ramdisk": "URL of the initial ramdisk of the agent; by default the configured one.",
    "deploy_iso": "URL of a bootable image of the agent, in place of kernel and ramdisk.",
    "rescue_kernel": "URL of the kernel of the ramdisk for rescues; by default deploy_kernel.",
    "rescue_ramdisk": "URL of the initial ramdisk for rescues; by default deploy_ramdisk.",
    "rescue_iso": "URL of a bootable image for rescues, in place of kernel and ramdisk.",
    "kernel_append_params": "More words for the kernel's command line of the ramdisk.",
}

REDFISH = {
    "redfish_address": "URL of the BMC, such as https://10.0.0.9.",
    "redfish_system_id": "Path of the system, such as /redfish/v1/Systems/1; needed where the BMC"
    " has several.",
    "redfish_username": "User name at the BMC.",
    "redfish_password": "Password at the BMC.",
    "redfish_verify_ca": "true, false, or the path of a CA bundle: how the BMC's certificate is"
    " checked.",
    "redfish_auth_type": "basic, session or auto: how to log in.",
    "ipmi_username": "User name for serial over LAN; by default redfish_username.",
    "ipmi_password": "Password for serial over LAN; by default redfish_password.",
    "ipmi_cipher_suite": "Number of the cipher suite of serial over LAN.",
    "ipmi_terminal_port": "TCP port of the node's serial console; by default a free one.",
    **_RAMDISK,
}

IPMI = {
    "ipmi_address": "Name or IP address of the BMC.",
    "ipmi_port": "UDP port of the BMC; by default 623.",
    "ipmi_username": "User name at the BMC.",
    "ipmi_password": "Password at the BMC.",
    "ipmi_priv_level": "Privilege level to ask for; by default ADMINISTRATOR.",
    "ipmi_protocol_version": "2.0 or 1.5.",
    "ipmi_cipher_suite": "Number of the cipher suite; by default what the BMC offers.",
    "ipmi_bridging": "no, single or dual: whether the BMC is reached through another.",
    "ipmi_local_address": "Own address on the bus, for bridging.",
    "ipmi_target_address": "Address of the BMC behind, for bridging.",
    "ipmi_target_channel": "Channel of the BMC behind, for bridging.",
    "ipmi_transit_address": "Address in between, for dual bridging.",
    "ipmi_transit_channel": "Channel in between, for dual bridging.",
    "ipmi_terminal_port": "TCP port of the node's serial console; by default a free one.",
    **_RAMDISK,
}

SIMULATED = {"rack": "Name of the rack it stands in; scripts and power cuts can be for a rack."}
