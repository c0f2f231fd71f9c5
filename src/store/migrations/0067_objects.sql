-- Raw mail in an S3-compatible store: `object` is the name of the object that has the bytes of a blob, whose row has none.
ALTER TABLE blobs ADD COLUMN object TEXT;
CREATE UNIQUE INDEX blobs_by_object ON blobs (object) WHERE object IS NOT NULL;
-- Objects that no blob refers to: those that are being written, and those to be deleted, after `delete_after` (milliseconds). No blob refers to one that is
-- `claimed` any more.
CREATE TABLE unreferenced_objects (
  object TEXT PRIMARY KEY,
  delete_after INTEGER NOT NULL,
  claimed INTEGER NOT NULL DEFAULT 0
);
CREATE INDEX unreferenced_objects_by_time ON unreferenced_objects (delete_after);
-- Raw messages of more than `above` bytes are objects, up to the blob `done`.
CREATE TABLE moved_raw_mail (
  id INTEGER PRIMARY KEY,
  done INTEGER NOT NULL,
  above INTEGER NOT NULL
);
