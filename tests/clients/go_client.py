"""A Go program that does with gophercloud, the library below Terraform's provider, what Terraform
does. Needs Debian's golang-go, golang-github-gophercloud-gophercloud-dev and -utils-dev.

    python -m tests.clients.go_client        (scripts/soak)
"""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.support.server import clean_environment
from tests.support.server import running_server

SOURCE = Path(__file__).resolve().parent / "gophercloud"
LIBRARIES = Path("/usr/share/gocode")
NEEDS = (
    "golang-go golang-github-gophercloud-gophercloud-dev golang-github-gophercloud-utils-dev"
)  # fmt: skip


def built(folder: Path) -> Path:
    """The program."""
    made = folder / "gopher"
    environ = clean_environment() | {
        "GO111MODULE": "off", "GOPATH": str(LIBRARIES), "GOCACHE": str(folder / "cache"),
    }  # fmt: skip
    subprocess.run(["go", "build", "-o", made, "."], cwd=SOURCE, env=environ, check=True)
    return made


def main() -> int:
    """Run it against a service with a simulated fleet."""
    if shutil.which("go") is None or not (LIBRARIES / "src/github.com/gophercloud/utils").exists():
        print(f"Go's client of OpenStack is missing; as root: apt-get install {NEEDS}")
        return 1
    with tempfile.TemporaryDirectory(dir=os.environ.get("TMPDIR")) as name:
        folder = Path(name)
        program = built(folder)
        with running_server(folder, flags=("--demo", "--demo-nodes", "2")) as server:
            environ = clean_environment() | {
                "OS_CLIENT_CONFIG_FILE": str(server.clouds), "OS_CLOUD": "siderite",
            }  # fmt: skip
            words = [program, "tiny", "m1.tiny", "m1.small"]
            return subprocess.run(words, env=environ, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
