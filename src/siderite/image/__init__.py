"""Images: records and the files they stand for; Glance v2 on the wire.

A record says what an image is (`domain`), `files` keeps its data in a directory, and `transfer`
brings the two together: data is written to a file that no record speaks of yet, and becomes the
image's with the commit that makes the image active. What a crash leaves is found by the lock that
its writer no longer holds, and swept away.

`Images` is the room's face for others in the same program; `ImageService` is the HTTP one.
"""

from siderite.image.images import Images
from siderite.image.web.service import ImageService

__all__ = ["ImageService", "Images"]
