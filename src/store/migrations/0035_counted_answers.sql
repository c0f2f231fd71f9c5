-- Bytes of the answers of other servers to a delivery that count as storage of its account.
ALTER TABLE deliveries_queue ADD COLUMN octets INTEGER NOT NULL DEFAULT 0;
