"""Identity: who is asking, and what they may do; Keystone v3 on the wire.

`Identity` answers two questions for every API of the program: whose token is this, whose name and
password are these. `IdentityService` is the HTTP face: logging in, the catalogue, and the few
nouns that clients need (projects, users, roles and who holds them).

Rights are never copied into a token. A token names a user and a scope; what it is worth is read
from the grants when it is looked at, so nothing has to be hunted down when rights change. Each
user has an epoch, and a token is good only in the epoch it was issued in: a new password or a
disabled account begins a new one, and even a token whose making was under way at that moment is
worthless. Look-ups are remembered for five seconds; changes made in the same process count at
once.
"""

from siderite.identity.identity import Identity
from siderite.identity.keystone import Either
from siderite.identity.keystone import Keystone
from siderite.identity.web import CatalogEntry
from siderite.identity.web import IdentityService

__all__ = ["CatalogEntry", "Either", "Identity", "IdentityService", "Keystone"]
