"""Power: asked for, read, told."""
