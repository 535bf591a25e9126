"""What can be asked of identity: each change is one commit, which also revokes what it must."""
