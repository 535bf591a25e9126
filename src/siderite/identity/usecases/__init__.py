"""What can be asked of identity: each change is one commit, and revokes what it must in the same one."""
