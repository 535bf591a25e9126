"""The service outside that frees room for PENDING servers: a client of the public API."""
