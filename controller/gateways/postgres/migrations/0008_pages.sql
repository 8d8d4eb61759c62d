-- serves: 0.1.0
-- What the pages look things up by: filters of the job history, charts, and the day of a board.

CREATE INDEX jobs_by_repo ON jobs (lower(repo), created_at DESC, job_id DESC);
CREATE INDEX jobs_by_label ON jobs USING gin (labels);
CREATE INDEX jobs_started ON jobs (started_at) INCLUDE (created_at) WHERE started_at IS NOT NULL;
CREATE INDEX workers_done ON workers (pool, completed_at DESC) WHERE status = 'completed';
CREATE INDEX workers_failed ON workers (completed_at DESC, failure_reason) WHERE status = 'failed';
CREATE INDEX workers_on_node ON workers (node, pod_ended_at) INCLUDE (pod_at, status, failure_reason) WHERE node IS NOT NULL;
CREATE INDEX workers_by_pool ON workers (pool, created_at DESC, name) INCLUDE (status, node);
