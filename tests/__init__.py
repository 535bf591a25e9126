"""The tests of Siderite; folders mirror those of src/siderite."""
