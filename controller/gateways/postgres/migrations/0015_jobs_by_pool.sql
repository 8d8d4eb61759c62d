-- serves: 0.1.0
-- The jobs of a pool, by status and then by time: the overview leads to those that wait, and a pool may have had few.

CREATE INDEX jobs_by_pool ON jobs (pool, status, created_at DESC, job_id DESC);
