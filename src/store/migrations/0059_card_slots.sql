-- A secret has a slot, which is used again for another of the same size once its card is cancelled: what is deleted leaves no more rows than there were
-- cards at once. `secret_slot` is NULL for a cancelled card.
ALTER TABLE card_secrets RENAME COLUMN card_seq TO slot;
ALTER TABLE cards ADD COLUMN secret_slot INTEGER;
UPDATE cards SET secret_slot = seq WHERE status <> 'cancelled';

CREATE TABLE card_slots_free (
  slot INTEGER PRIMARY KEY,
  octets INTEGER NOT NULL
);
CREATE INDEX card_slots_free_by_size ON card_slots_free (octets);
INSERT INTO card_slots_free (slot, octets) SELECT slot, length(encrypted_data) FROM card_secrets
  WHERE slot NOT IN (SELECT secret_slot FROM cards WHERE secret_slot IS NOT NULL);
