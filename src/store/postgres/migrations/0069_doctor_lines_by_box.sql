-- Of several boxes on one database each has lines of what is checked on its machine, and the free bytes of its disk; `box` is its name. Lines of what all have,
-- and those of a box that has the database alone, have none.
ALTER TABLE doctor_lines ADD COLUMN box TEXT NOT NULL DEFAULT '';
ALTER TABLE doctor_lines DROP CONSTRAINT doctor_lines_pkey;
ALTER TABLE doctor_lines ADD PRIMARY KEY (box, name, subject);
ALTER TABLE doctor_free ADD COLUMN box TEXT NOT NULL DEFAULT '';
ALTER TABLE doctor_free DROP CONSTRAINT doctor_free_pkey;
ALTER TABLE doctor_free ADD PRIMARY KEY (box, at);
