-- The deliveries of an event, whose answers go with its data: an endpoint may have repeated what was posted.
CREATE INDEX deliveries_by_event ON deliveries_queue (load ->> '$.event_id') WHERE kind = 'webhook';
