"""Identity over HTTP: Keystone's v3 shapes in, use cases, Keystone's v3 shapes out."""

from siderite.identity.web.catalogue import CatalogEntry
from siderite.identity.web.service import IdentityService

__all__ = ["CatalogEntry", "IdentityService"]
