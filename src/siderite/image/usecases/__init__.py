"""What can be asked of images: each change is one commit. No file is touched here."""
