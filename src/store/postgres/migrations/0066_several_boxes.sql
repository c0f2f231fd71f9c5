-- What several boxes on one database have in memory or in files of one: the files of ACME and its open challenges, codes of OAuth, and the messages that
-- callers got by waiting.
CREATE TABLE acme_files (
  directory TEXT NOT NULL,
  name TEXT NOT NULL,
  sealed BYTEA NOT NULL,
  PRIMARY KEY (directory, name)
);
CREATE TABLE acme_challenges (
  token TEXT PRIMARY KEY,
  answer TEXT NOT NULL,
  posted_at BIGINT NOT NULL
);
CREATE TABLE oauth_codes (
  hash TEXT PRIMARY KEY,
  account_id TEXT NOT NULL,
  sealed BYTEA NOT NULL,
  issued_at BIGINT NOT NULL,
  used BIGINT NOT NULL DEFAULT 0,
  stolen BIGINT NOT NULL DEFAULT 0,
  key_id TEXT
);
CREATE INDEX oauth_codes_by_account ON oauth_codes (account_id, issued_at);
CREATE TABLE given_messages (
  holder TEXT NOT NULL,
  identity_id TEXT NOT NULL,
  seq BIGINT NOT NULL,
  given_at BIGINT NOT NULL,
  PRIMARY KEY (holder, identity_id, seq)
);
CREATE INDEX given_messages_by_time ON given_messages (given_at);
