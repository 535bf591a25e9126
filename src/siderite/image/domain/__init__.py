"""What an image is, who may see it, and what its first bytes tell. Pure."""
