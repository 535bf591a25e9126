-- servers_state finds those that are pending, too.
DROP INDEX servers_pending;
