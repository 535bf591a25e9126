-- Which port has an address, so that ports are listed and found without reading servers.
ALTER TABLE addresses ADD COLUMN port TEXT;
--sqlite UPDATE addresses SET port = (SELECT json_extract(p.value, '$.id') FROM servers s, json_each(s.doc, '$.ports') p WHERE s.uuid = addresses.server AND json_extract(p.value, '$.network') = addresses.network AND json_extract(p.value, '$.address') = addresses.address);
--postgresql UPDATE addresses SET port = p.value ->> 'id' FROM servers s, json_array_elements(COALESCE(s.doc::json -> 'ports', '[]'::json)) AS p(value) WHERE s.uuid = addresses.server AND p.value ->> 'network' = addresses.network AND p.value ->> 'address' = addresses.address;
CREATE UNIQUE INDEX addresses_port ON addresses (port);
