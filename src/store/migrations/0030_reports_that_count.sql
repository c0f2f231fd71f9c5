-- Reports that counted nothing are in the log; scores sum these rows.
DELETE FROM reputation_reports WHERE counted = 0;
