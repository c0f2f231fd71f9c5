-- One follower ends what deleted identities had, from where those that did so stand.
INSERT INTO bookmarks (name, seq)
  SELECT 'identities', min(seq) FROM bookmarks WHERE name IN ('sending', 'sms') HAVING count(*) > 0;
DELETE FROM bookmarks WHERE name = 'sms';

-- Deliveries that only wait for their identity, which is suspended.
CREATE INDEX email_recipients_suspended ON email_recipients (seq) WHERE suspended = 1 AND status = 'deferred';
