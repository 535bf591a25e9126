"""Where a server goes, and what becomes of one for which there is no room."""
