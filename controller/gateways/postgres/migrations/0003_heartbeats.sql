-- serves: 0.1.0
-- Heartbeats of live workers, a snapshot per pool and minute, and what retention needs to find its rows.

ALTER TABLE workers
    ADD COLUMN heartbeat_at timestamptz,
    ADD COLUMN pod_phase text,
    ADD COLUMN runner_status text CHECK (runner_status IN ('online', 'offline')),
    ADD COLUMN runner_busy boolean;
CREATE INDEX workers_with_logs ON workers (completed_at) WHERE failure_info ?| ARRAY['log_tail', 'events'];

CREATE TABLE board_snapshots (
    pool                text NOT NULL,
    at                  timestamptz NOT NULL,
    slots               integer NOT NULL,
    free                integer NOT NULL,
    busy                integer NOT NULL,
    held                integer NOT NULL,
    unreachable         integer NOT NULL,
    queue_depth         integer NOT NULL,
    oldest_wait_seconds integer NOT NULL,
    PRIMARY KEY (pool, at)
);
CREATE INDEX board_snapshots_at ON board_snapshots (at);
