-- 1 from a rotation of the master key until the file is rewritten: deleted rows in it still open with the former key.
ALTER TABLE box ADD COLUMN rewrite_due INTEGER NOT NULL DEFAULT 0;
