CREATE TABLE agents (
  seq INTEGER PRIMARY KEY AUTOINCREMENT,
  id TEXT NOT NULL UNIQUE,
  account_id TEXT NOT NULL,
  identity_id TEXT NOT NULL UNIQUE,
  handle TEXT NOT NULL UNIQUE,
  display_name TEXT NOT NULL,
  description TEXT,
  avatar_url TEXT,
  capabilities TEXT NOT NULL,
  links TEXT NOT NULL,
  metadata TEXT NOT NULL,
  created_at TEXT NOT NULL,
  updated_at TEXT NOT NULL
);
CREATE INDEX agents_by_account ON agents (account_id, seq);

-- Handles are their agent's for ever: a row stays when the handle is changed, and when the agent is gone.
CREATE TABLE agent_handles (
  handle TEXT PRIMARY KEY,
  agent_id TEXT NOT NULL
);
CREATE INDEX agent_handles_by_agent ON agent_handles (agent_id);

CREATE TABLE erc8004_links (
  seq INTEGER PRIMARY KEY AUTOINCREMENT,
  id TEXT NOT NULL UNIQUE,
  agent_id TEXT NOT NULL,
  chain_id INTEGER NOT NULL,
  registry TEXT NOT NULL,
  token_id TEXT NOT NULL,
  owner_address TEXT,
  tx_hash TEXT,
  created_at TEXT NOT NULL,
  UNIQUE (chain_id, registry, token_id)
);
CREATE INDEX erc8004_links_by_agent ON erc8004_links (agent_id, seq);
