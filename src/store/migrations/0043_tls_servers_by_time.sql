-- What was not seen for a month is deleted, a little at a time.
CREATE INDEX tls_servers_by_time ON tls_servers (checked_at);
