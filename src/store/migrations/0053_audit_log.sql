-- Who did what. Rows are only appended: each has the SHA-256 of the row before it and of itself, in `hash`. Triggers refuse what is no append, and
-- the deletion of rows after the anchor.
CREATE TABLE audit (
  seq INTEGER PRIMARY KEY,
  account_id TEXT NOT NULL,
  at TEXT NOT NULL,
  -- a key, a session, operator, or anonymous
  actor TEXT NOT NULL,
  -- the OAuth client, mcp, or the control socket
  client TEXT,
  address TEXT,
  action TEXT NOT NULL,
  target TEXT,
  identity_id TEXT,
  -- how many times, for what is repeated within a minute or was too much to have rows of its own
  count INTEGER NOT NULL,
  -- JSON
  detail TEXT NOT NULL,
  hash BLOB NOT NULL
) STRICT;
CREATE INDEX audit_by_account ON audit (account_id, seq);
CREATE INDEX audit_by_actor ON audit (account_id, actor, seq);
CREATE INDEX audit_by_identity ON audit (account_id, identity_id, seq) WHERE identity_id IS NOT NULL;

-- The last row, and the last one that retention has deleted.
CREATE TABLE audit_chain (
  id INTEGER PRIMARY KEY CHECK (id = 1),
  anchor_seq INTEGER NOT NULL,
  anchor_hash BLOB NOT NULL,
  head_seq INTEGER NOT NULL,
  head_hash BLOB NOT NULL
) STRICT;
INSERT INTO audit_chain VALUES (1, 0, zeroblob(32), 0, zeroblob(32));

CREATE TRIGGER audit_appended BEFORE INSERT ON audit
WHEN NEW.seq IS NOT (SELECT head_seq + 1 FROM audit_chain)
BEGIN SELECT RAISE(ABORT, 'rows of audit are only appended'); END;

CREATE TRIGGER audit_head AFTER INSERT ON audit
BEGIN UPDATE audit_chain SET head_seq = NEW.seq, head_hash = NEW.hash; END;

CREATE TRIGGER audit_unchanged BEFORE UPDATE ON audit
BEGIN SELECT RAISE(ABORT, 'rows of audit are never changed'); END;

CREATE TRIGGER audit_kept BEFORE DELETE ON audit
WHEN OLD.seq > (SELECT anchor_seq FROM audit_chain)
BEGIN SELECT RAISE(ABORT, 'rows of audit are deleted only before its anchor'); END;

CREATE TRIGGER audit_chain_head BEFORE UPDATE OF id, head_seq, head_hash ON audit_chain
WHEN NEW.head_seq IS NOT OLD.head_seq + 1 OR NEW.head_hash IS NOT (SELECT hash FROM audit WHERE seq = NEW.head_seq)
BEGIN SELECT RAISE(ABORT, 'the head of audit is its last row'); END;

CREATE TRIGGER audit_chain_anchor BEFORE UPDATE OF id, anchor_seq, anchor_hash ON audit_chain
WHEN NEW.anchor_seq <= OLD.anchor_seq OR NEW.anchor_hash IS NOT (SELECT hash FROM audit WHERE seq = NEW.anchor_seq)
BEGIN SELECT RAISE(ABORT, 'the anchor of audit is a row that is still there'); END;

CREATE TRIGGER audit_chain_unique BEFORE INSERT ON audit_chain
BEGIN SELECT RAISE(ABORT, 'there is one chain'); END;

CREATE TRIGGER audit_chain_kept BEFORE DELETE ON audit_chain
BEGIN SELECT RAISE(ABORT, 'the chain is never deleted'); END;
