"""Whether a node has what a deploy will need: told before anything is begun."""

from siderite.baremetal.domain.node import Node
from siderite.baremetal.drivers.agent import image
from siderite.baremetal.drivers.agent import rescue
from siderite.baremetal.drivers.agent.ramdisks import Ramdisks


class Ready:
    """Checks nodes for the deploys, inspections and rescues of `AgentSteps`."""

    def __init__(self, ramdisks: Ramdisks) -> None:
        self._ramdisks = ramdisks

    def lacks(self, node: Node, kind: str) -> str | None:
        """What the interface of this kind (`boot`, `deploy`, `inspect` or `rescue`) lacks on a
        node.
        """
        media = node.boot_interface != "ipxe"
        if kind == "rescue":
            return self._ramdisks.lacks(rescue.driver_info(node.driver_info), media=media)
        if kind == "inspect" and node.inspect_interface != "agent":
            return None
        if kind == "inspect" or (kind == "boot" and node.deploy_interface == "direct"):
            return self._ramdisks.lacks(node.driver_info, media=media)
        if kind != "deploy" or node.deploy_interface == "noop":
            return None
        if node.deploy_interface == "ramdisk":
            if not media:
                return "deploy_interface ramdisk needs virtual media; boot_interface is ipxe."
            if not node.instance_info.get("boot_iso"):
                return "instance_info lacks boot_iso, the address of the image to boot."
            return None
        by_id = self._ramdisks.has_images
        return image.problem(node.instance_info, by_id=by_id) or self.lacks(node, "boot")
