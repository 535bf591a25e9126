"""What is legal for nodes: pure values and functions, no I/O, no clock."""
