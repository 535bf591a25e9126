"""Images over HTTP, as Glance v2 has them."""
