-- Seed 004: a node without a provision state is an available one. The state also stands in the
-- document and in the rendered body.
--sqlite UPDATE nodes SET doc = json_set(doc, '$.provision_state', 'available') WHERE provision_state IS NULL;
--postgresql UPDATE nodes SET doc = (jsonb_set(doc::jsonb, '{provision_state}', '"available"'))::text WHERE provision_state IS NULL;
UPDATE nodes SET body = replace(body, '"provision_state":null,"uuid"', '"provision_state":"available","uuid"')
  WHERE provision_state IS NULL;
UPDATE nodes SET provision_state = 'available' WHERE provision_state IS NULL;
