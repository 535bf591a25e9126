"""Pages for the operator."""
