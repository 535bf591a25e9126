"""A public key that servers are given, and its fingerprint."""

import base64
import binascii
import hashlib
import re
import struct

import msgspec

from siderite.core.errors import Invalid

KINDS = ("ssh", "x509")
_PEM = re.compile(r"-----BEGIN CERTIFICATE-----(.+?)-----END CERTIFICATE-----", re.S)


class Keypair(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A public key of a user's. The private one is never kept."""

    uuid: str
    version: int = 1
    created_at: str
    user_id: str
    name: str
    kind: str = "ssh"
    public_key: str
    fingerprint: str


def fingerprint(public_key: str, kind: str) -> str:
    """MD5 of an SSH key, SHA-1 of a certificate, in pairs with colons."""
    try:
        digest = _of_ssh(public_key) if kind == "ssh" else _of_certificate(public_key)
    except (ValueError, binascii.Error, struct.error, IndexError) as why:
        raise Invalid(
            "Keypair data is invalid: failed to generate fingerprint; public_key must be"
            f" {'an OpenSSH public key' if kind == 'ssh' else 'a PEM certificate'}."
        ) from why
    return ":".join(digest[at : at + 2] for at in range(0, len(digest), 2))


def _of_ssh(public_key: str) -> str:
    kind, blob = public_key.split(None, 2)[:2]
    data = base64.b64decode(blob, validate=True)
    (length,) = struct.unpack_from(">I", data)
    if data[4 : 4 + length].decode("ascii") != kind or len(data) <= 4 + length:
        raise ValueError(kind)
    return hashlib.md5(data, usedforsecurity=False).hexdigest()


def _of_certificate(public_key: str) -> str:
    found = _PEM.search(public_key)
    if found is None:
        raise ValueError("no certificate")
    data = base64.b64decode("".join(found[1].split()), validate=True)
    if not data.startswith(b"\x30"):
        raise ValueError("no DER sequence")
    return hashlib.sha1(data, usedforsecurity=False).hexdigest()
