"""The pure parts of the benchmark."""
