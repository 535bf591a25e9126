"""The `siderite` command, as its users type it."""
