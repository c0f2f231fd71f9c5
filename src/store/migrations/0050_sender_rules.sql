-- Who may write to an identity, or to all of an account (`subject_id`), as JSON.
CREATE TABLE sender_rules (
  subject_id TEXT PRIMARY KEY,
  rules TEXT NOT NULL,
  updated_at TEXT NOT NULL
) WITHOUT ROWID;
