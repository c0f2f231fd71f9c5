-- Of several boxes on one database each has lines of what is checked on its machine, and the free bytes of its disk; `box` is its name. Lines of what all have,
-- and those of a box that has the database alone, have none.
CREATE TABLE doctor_lines_by_box (
  name TEXT NOT NULL,
  subject TEXT NOT NULL,
  check_name TEXT NOT NULL,
  place INTEGER NOT NULL,
  status TEXT NOT NULL,
  message TEXT NOT NULL,
  fix TEXT,
  since TEXT NOT NULL,
  checked_at TEXT NOT NULL,
  box TEXT NOT NULL DEFAULT '',
  PRIMARY KEY (box, name, subject)
) WITHOUT ROWID;
INSERT INTO doctor_lines_by_box SELECT name, subject, check_name, place, status, message, fix, since, checked_at, '' FROM doctor_lines;
DROP TABLE doctor_lines;
ALTER TABLE doctor_lines_by_box RENAME TO doctor_lines;
CREATE TABLE doctor_free_by_box (
  at TEXT NOT NULL,
  free INTEGER NOT NULL,
  box TEXT NOT NULL DEFAULT '',
  PRIMARY KEY (box, at)
) WITHOUT ROWID;
INSERT INTO doctor_free_by_box SELECT at, free, '' FROM doctor_free;
DROP TABLE doctor_free;
ALTER TABLE doctor_free_by_box RENAME TO doctor_free;
