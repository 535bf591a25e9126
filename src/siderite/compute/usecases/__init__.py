"""One transaction each."""
