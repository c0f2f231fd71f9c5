-- Large octets are in pieces, as a row is copied several times in memory while it is written: `blobs.bytes` is the first, and here are those after it.
CREATE TABLE blob_pieces (
  blob_id INTEGER NOT NULL REFERENCES blobs (id) ON DELETE CASCADE,
  place INTEGER NOT NULL,
  bytes BLOB NOT NULL,
  PRIMARY KEY (blob_id, place)
);
