"""Certificates that BMCs and ramdisks make for themselves."""

from pathlib import Path
from subprocess import run


def self_signed(path: Path) -> Path:
    """One for the loopback, with its key, in one file."""
    words = ["-keyout", str(path), "-out", str(path), "-subj", "/CN=itself", "-nodes", "-days", "1"]
    kind = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1"]
    name = ["-addext", "subjectAltName=IP:127.0.0.1"]
    run(["openssl", "req", "-x509", *kind, *name, *words], check=True, capture_output=True)
    return path
