"""What tests lean on and users never see: a private PostgreSQL, and the like."""
