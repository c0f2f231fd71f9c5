-- What several boxes on one database count together; one box alone counts in memory. Wrong guesses at passwords and codes, by a hash of the name.
CREATE TABLE guesses (
  name TEXT PRIMARY KEY,
  tallies TEXT NOT NULL,
  known BIGINT NOT NULL,
  used_at BIGINT NOT NULL
);
CREATE INDEX guesses_by_use ON guesses (known, used_at);
-- Failed logins by SMTP: a hash of each name and password that was tried from a network.
CREATE TABLE failed_logins (
  network TEXT NOT NULL,
  tried TEXT NOT NULL,
  failed_at BIGINT NOT NULL,
  PRIMARY KEY (network, tried)
);
CREATE INDEX failed_logins_by_time ON failed_logins (failed_at);
-- Calls that count for a rate limit, by the run of a box that answered them.
CREATE TABLE rate_uses (
  policy TEXT NOT NULL,
  caller TEXT NOT NULL,
  run_id TEXT NOT NULL,
  used BIGINT NOT NULL,
  per_minute BIGINT NOT NULL,
  used_at BIGINT NOT NULL,
  PRIMARY KEY (policy, caller, run_id)
);
CREATE INDEX rate_uses_by_time ON rate_uses (used_at);
