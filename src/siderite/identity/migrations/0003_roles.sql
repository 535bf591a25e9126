-- Roles beside the four that policies know (domain.py); `folded` is the name without upper case.
CREATE TABLE identity_roles (
  name TEXT PRIMARY KEY,
  folded TEXT NOT NULL,
  description TEXT NOT NULL
);
CREATE UNIQUE INDEX identity_roles_folded_key ON identity_roles (folded);
