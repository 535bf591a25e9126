-- All that lists filter and sort by, apart from the documents, in the order of lists: what no index
-- of its own finds is looked for here, and not in rows of some kilobytes each. PostgreSQL keeps large
-- values apart anyway.
--sqlite CREATE INDEX servers_slim ON servers (deleted, id, project_id, uuid, version, name, vm_state, task_state, power_state, host, node, hostname, flavor_id, image_id, key_name, availability_zone, user_id, tag_text, addresses_text, locked_by, reservation_id, created_at, changed_at, launched_at, terminated_at, description, progress, launch_index, config_drive, root_device_name, access_ip_v4, access_ip_v6);
--sqlite CREATE INDEX servers_slim_project ON servers (project_id, deleted, id, uuid, version, name, vm_state, task_state, power_state, host, node, hostname, flavor_id, image_id, key_name, availability_zone, user_id, tag_text, addresses_text, locked_by, reservation_id, created_at, changed_at, launched_at, terminated_at, description, progress, launch_index, config_drive, root_device_name, access_ip_v4, access_ip_v6);
--sqlite DROP INDEX servers_project;
--sqlite DROP INDEX servers_live;
CREATE INDEX servers_state ON servers (deleted, vm_state, id);
