-- `sender`: the domain that sent the report by a DMARC pass, empty without one; it is part of the key. `site`: the last two labels of it.
CREATE TABLE domain_reports_by_sender (
  seq INTEGER PRIMARY KEY AUTOINCREMENT,
  domain_id TEXT NOT NULL,
  kind TEXT NOT NULL,
  reporter TEXT NOT NULL,
  report_id TEXT NOT NULL,
  sender TEXT NOT NULL DEFAULT '',
  site TEXT NOT NULL DEFAULT '',
  begins_at TEXT,
  ends_at TEXT,
  received_at TEXT NOT NULL,
  data TEXT NOT NULL,
  UNIQUE (domain_id, kind, reporter, report_id, sender)
);

-- rtrim(x, replace(x, '.', '')) is what precedes the last label of x, with its dot.
INSERT INTO domain_reports_by_sender
    (seq, domain_id, kind, reporter, report_id, sender, site, begins_at, ends_at, received_at, data)
  SELECT seq, domain_id, kind, reporter, report_id, sender,
    substr(sender, length(rtrim(rtrim(rtrim(sender, replace(sender, '.', '')), '.'), replace(sender, '.', ''))) + 1),
    begins_at, ends_at, received_at, data
  FROM (SELECT *, iif(verified, coalesce(data ->> '$.verified_domain', ''), '') AS sender FROM domain_reports)
  ORDER BY seq;

DROP TABLE domain_reports;
ALTER TABLE domain_reports_by_sender RENAME TO domain_reports;
CREATE INDEX domain_reports_by_domain ON domain_reports (domain_id, seq);
