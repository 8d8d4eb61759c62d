-- serves: 0.1.0
-- The chart of waits is drawn per pool, still from its index alone. The index that it replaces, jobs_started, goes with
-- a later release: dropping it would lock the table against webhooks until all migrations are done.

CREATE INDEX jobs_started_by_pool ON jobs (started_at) INCLUDE (created_at, pool) WHERE started_at IS NOT NULL;
