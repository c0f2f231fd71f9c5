-- The people of an account and how each signs in, the first one first. Whoever held an account until now is its owner; the id of such a person has the
-- characters of that of the account, to which the second factor is bound.
CREATE TABLE logins_of_people (
  seq INTEGER PRIMARY KEY AUTOINCREMENT,
  id TEXT NOT NULL UNIQUE,
  account_id TEXT NOT NULL,
  role TEXT NOT NULL,
  email TEXT NOT NULL,
  -- without regard to case
  email_folded TEXT NOT NULL UNIQUE,
  -- argon2id, as a PHC string
  password TEXT NOT NULL,
  second_factor BLOB,
  confirmed_at TEXT,
  -- the time step of the last code that was taken: none is taken twice
  last_step INTEGER NOT NULL DEFAULT 0,
  created_at TEXT NOT NULL,
  changed_at TEXT NOT NULL
);
INSERT INTO logins_of_people (id, account_id, role, email, email_folded, password, second_factor, confirmed_at, last_step, created_at, changed_at)
  SELECT 'person' || substr(account_id, 5), account_id, 'owner', email, email_folded, password, second_factor, confirmed_at, last_step, changed_at, changed_at
  FROM logins ORDER BY account_id;
DROP TABLE logins;
ALTER TABLE logins_of_people RENAME TO logins;
CREATE INDEX logins_by_account ON logins (account_id, seq);

ALTER TABLE recovery_codes RENAME COLUMN account_id TO person_id;
UPDATE recovery_codes SET person_id = 'person' || substr(person_id, 5);
ALTER TABLE sign_in_networks RENAME COLUMN account_id TO person_id;
UPDATE sign_in_networks SET person_id = 'person' || substr(person_id, 5);
ALTER TABLE sessions ADD COLUMN person_id TEXT NOT NULL DEFAULT '';
UPDATE sessions SET person_id = 'person' || substr(account_id, 5);
CREATE INDEX sessions_by_person ON sessions (person_id, seq);

-- Links by which people join an account, under the SHA-256 of 256 random bits; gone once used.
CREATE TABLE invitations (
  seq INTEGER PRIMARY KEY AUTOINCREMENT,
  id TEXT NOT NULL UNIQUE,
  account_id TEXT NOT NULL,
  email TEXT NOT NULL,
  role TEXT NOT NULL,
  hash TEXT NOT NULL UNIQUE,
  -- the person who invited; null for the operator
  created_by TEXT,
  created_at TEXT NOT NULL,
  expires_at TEXT NOT NULL
);
CREATE INDEX invitations_by_account ON invitations (account_id, seq);
CREATE INDEX invitations_by_expiry ON invitations (expires_at);

-- Links in mailed digests by which a person decides a hold, under the SHA-256 of 256 random bits; `sha256` is that of the bytes they were told of.
CREATE TABLE hold_links (
  hash TEXT PRIMARY KEY,
  hold_id TEXT NOT NULL,
  person_id TEXT NOT NULL,
  sha256 TEXT NOT NULL,
  expires_at TEXT NOT NULL
) WITHOUT ROWID;
CREATE INDEX hold_links_by_expiry ON hold_links (expires_at);

-- The last digest of each person, and the newest hold that existed then.
CREATE TABLE hold_digests (
  person_id TEXT PRIMARY KEY,
  sent_at TEXT NOT NULL,
  up_to INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX holds_open_by_account ON holds (account_id, seq) WHERE status = 'open';
