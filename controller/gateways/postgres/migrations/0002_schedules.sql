-- serves: 0.1.0
-- schedules, occurrences, and which warm window a worker was made for.
-- Types have no check: a row that a newer program wrote is skipped with a reason, not refused.

CREATE TABLE schedules (
    name            text PRIMARY KEY,
    owner           text NOT NULL CHECK (owner IN ('file', 'api')),
    enabled         boolean NOT NULL,
    file_enabled    boolean,                    -- what the file said last; null: not in the file
    type            text NOT NULL,
    spec            text NOT NULL,
    timezone        text NOT NULL DEFAULT 'UTC',
    action          text NOT NULL CHECK (action IN ('warm', 'dispatch', 'pause', 'resume', 'drain', 'prune')),
    arguments       jsonb NOT NULL DEFAULT '{}',
    catch_up        text NOT NULL DEFAULT 'skip' CHECK (catch_up IN ('skip', 'run_once', 'run_all_capped')),
    catch_up_cap    integer NOT NULL DEFAULT 1,
    quiet_hours     jsonb,
    jitter          integer NOT NULL DEFAULT 0,
    next_due_at     timestamptz,                -- the time itself
    next_run_at     timestamptz,                -- with its jitter
    last_run_at     timestamptz,
    last_error      text,
    created_at      timestamptz NOT NULL,
    updated_at      timestamptz NOT NULL
);
CREATE INDEX schedules_next_run ON schedules (next_run_at) WHERE enabled;

CREATE TABLE occurrences (
    id              bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    schedule        text NOT NULL,
    due_at          timestamptz NOT NULL,
    action          text NOT NULL,
    arguments       jsonb NOT NULL DEFAULT '{}',
    status          text NOT NULL
        CHECK (status IN ('pending', 'running', 'completed', 'failed', 'skipped', 'missed')),
    reason          text,
    priority        integer NOT NULL DEFAULT 10,
    manual          boolean NOT NULL DEFAULT false,
    caught_up       boolean NOT NULL DEFAULT false,
    slots           integer NOT NULL DEFAULT 1,
    attempts        integer NOT NULL DEFAULT 0,
    max_attempts    integer NOT NULL DEFAULT 3,
    retry_after     timestamptz,
    leased_until    timestamptz,
    leased_by       text,
    sent_at         timestamptz,
    last_sent_at    timestamptz,
    run_id          bigint,
    run_ended_at    timestamptz,
    entity_id       bigint,
    entity_name     text,
    entity_type     text,
    repo            text,
    app_id          text,
    installation_id bigint,
    warm_until      timestamptz,
    result          text,
    error           text,
    created_at      timestamptz NOT NULL,
    started_at      timestamptz,
    completed_at    timestamptz,
    UNIQUE (schedule, due_at)
);
CREATE INDEX occurrences_open ON occurrences (due_at, id) WHERE status IN ('pending', 'running');
CREATE INDEX occurrences_failed ON occurrences (due_at, id) WHERE status = 'failed';
CREATE INDEX occurrences_run ON occurrences (run_id) WHERE run_id IS NOT NULL;
CREATE INDEX occurrences_newest ON occurrences (created_at DESC, id DESC);

ALTER TABLE workers ADD COLUMN warm_for bigint;
CREATE INDEX workers_warm ON workers (warm_for) WHERE warm_for IS NOT NULL;
