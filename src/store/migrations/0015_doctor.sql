-- What the doctor saw last, line by line; `since` is when the line came to its state. `place` keeps the lines of one check in order.
CREATE TABLE doctor_lines (
  name TEXT NOT NULL,
  subject TEXT NOT NULL,
  check_name TEXT NOT NULL,
  place INTEGER NOT NULL,
  status TEXT NOT NULL,
  message TEXT NOT NULL,
  fix TEXT,
  since TEXT NOT NULL,
  checked_at TEXT NOT NULL,
  PRIMARY KEY (name, subject)
) WITHOUT ROWID;

-- Octets that were free on the disk, by the hour: how fast it fills.
CREATE TABLE doctor_free (
  at TEXT PRIMARY KEY,
  free INTEGER NOT NULL
) WITHOUT ROWID;
