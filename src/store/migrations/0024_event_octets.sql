-- Octets of its account's room that an event takes: those that go beyond what is not counted, until it is redacted or goes. Of events from before, nothing was counted.
ALTER TABLE events ADD COLUMN octets INTEGER NOT NULL DEFAULT 0;

-- The same of what was done with a card (its purpose and description), and of a suppressed address (its reason).
ALTER TABLE card_transactions ADD COLUMN octets INTEGER NOT NULL DEFAULT 0;
ALTER TABLE suppressions ADD COLUMN octets INTEGER NOT NULL DEFAULT 0;
