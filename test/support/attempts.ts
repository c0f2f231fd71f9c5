/** All attempts as SQL: the first of a delivery is in its row, later ones are in a table. */
export const allAttempts = `(SELECT seq AS delivery_seq, 1 AS number, first_started_at AS started_at, first_ended_at AS ended_at, first_outcome AS outcome,
  first_answer AS answer FROM deliveries_queue WHERE first_started_at IS NOT NULL
  UNION ALL SELECT delivery_seq, number, started_at, ended_at, outcome, answer FROM delivery_attempts) AS attempts`

/** What a trigger waits for to hold a box before attempts begin, and before results are stored; SQLite. */
export const beforeAttempts = 'BEFORE UPDATE OF first_started_at ON deliveries_queue'
export const beforeResults = 'BEFORE UPDATE OF first_outcome ON deliveries_queue'
