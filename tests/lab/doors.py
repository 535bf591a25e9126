"""Ways into a lab host from afar: an sshd and a TLS listener of its own, with keys of their own.

The host calls itself 127.0.0.2, so that it is not where the tests are; both ends are on loopback.
"""

import os
import pwd
from dataclasses import dataclass
from pathlib import Path

from tests.lab.cache import run
from tests.support.ports import free_port

ADDRESS = "127.0.0.2"
_SSHD = """\
ListenAddress {address}:{port}
HostKey {folder}/host_key
AuthorizedKeysFile {folder}/user_key.pub
PidFile none
StrictModes no
UsePAM no
PasswordAuthentication no
PermitRootLogin prohibit-password
MaxStartups 50
LogLevel VERBOSE
"""
_LIBVIRTD = """\
listen_tls = 1
listen_tcp = 0
listen_addr = "{address}"
tls_port = "{port}"
auth_tls = "none"
ca_file = "{folder}/cacert.pem"
cert_file = "{folder}/servercert.pem"
key_file = "{folder}/serverkey.pem"
"""
_EC = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "30"]


@dataclass(frozen=True, slots=True)
class Doors:
    """Where they are, and what opens them; for `--option`s of a host."""

    folder: Path
    ssh_port: int
    tls_port: int

    @property
    def ssh_uri(self) -> str:
        user = pwd.getpwuid(os.geteuid()).pw_name
        return f"qemu+ssh://{user}@{ADDRESS}:{self.ssh_port}/system"

    @property
    def tls_uri(self) -> str:
        return f"qemu+tls://{ADDRESS}:{self.tls_port}/system"

    @property
    def ssh_options(self) -> dict[str, str]:
        return {
            "keyfile": str(self.folder / "user_key"),
            "known_hosts": str(self.folder / "known_hosts"),
        }

    @property
    def tls_options(self) -> dict[str, str]:
        return {"pkipath": str(self.folder)}


def prepare_doors(folder: Path) -> Doors:
    """Make keys, and the settings that `host.sh` starts sshd and libvirtd with."""
    doors = Doors(folder / "doors", free_port(address=ADDRESS), free_port(address=ADDRESS))
    doors.folder.mkdir()
    for name in ("host_key", "user_key"):
        make_ssh_key(doors.folder / name)
    host_key = (doors.folder / "host_key.pub").read_text()
    known = f"[{ADDRESS}]:{doors.ssh_port} {host_key}"
    (doors.folder / "known_hosts").write_text(known)
    (doors.folder / "sshd_config").write_text(
        _SSHD.format(address=ADDRESS, port=doors.ssh_port, folder=doors.folder)
    )
    make_certificates(doors.folder)
    with (folder / "etc" / "libvirtd.conf").open("a") as settings:
        settings.write(_LIBVIRTD.format(address=ADDRESS, port=doors.tls_port, folder=doors.folder))
    return doors


def make_ssh_key(path: Path) -> None:
    run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "lab", "-f", path])


def make_certificates(folder: Path) -> None:
    """An authority of its own, and certificates for the host and for its client."""
    authority = ["-subj", "/CN=lab", "-addext", "keyUsage=critical,keyCertSign"]
    _certificate(folder / "cakey.pem", folder / "cacert.pem", authority)
    signed = ["-CA", str(folder / "cacert.pem"), "-CAkey", str(folder / "cakey.pem")]
    for who, name in (("server", f"subjectAltName=IP:{ADDRESS},DNS:localhost"), ("client", "")):
        words = [*signed, "-subj", f"/CN={who}", "-addext", "basicConstraints=critical,CA:FALSE"]
        words += ["-addext", "keyUsage=critical,digitalSignature,keyEncipherment"]
        words += ["-addext", f"extendedKeyUsage={who}Auth"]
        words += ["-addext", name] if name else []
        _certificate(folder / f"{who}key.pem", folder / f"{who}cert.pem", words)


def _certificate(key: Path, certificate: Path, words: list[str]) -> None:
    run(["openssl", "req", "-x509", *_EC, "-keyout", key, "-out", certificate, *words])
