-- serves: 0.1.0
-- jobs, workers, events, holds, boards, leader.
-- No foreign key points to workers: its check would take ROW SHARE, which the EXCLUSIVE lock of sync_workers blocks.

CREATE TABLE jobs (
    job_id          bigint PRIMARY KEY,
    name            text NOT NULL DEFAULT '',
    html_url        text NOT NULL DEFAULT '',
    entity_id       bigint NOT NULL,
    entity_name     text NOT NULL,
    entity_type     text NOT NULL CHECK (entity_type IN ('Organization', 'User')),
    repo            text NOT NULL,
    private         boolean NOT NULL DEFAULT false,
    app_id          text NOT NULL,
    installation_id bigint NOT NULL,
    labels          text[] NOT NULL,
    pool            text,
    run_id          bigint NOT NULL,
    run_attempt     integer NOT NULL DEFAULT 1,
    status          text NOT NULL CHECK (status IN ('pending', 'running', 'completed', 'failed')),
    conclusion      text,
    runner_name     text,
    learnt_from     text NOT NULL DEFAULT 'webhook',
    confirmed       boolean NOT NULL DEFAULT true,
    allowed         boolean NOT NULL DEFAULT true,
    attempts        integer NOT NULL DEFAULT 0,
    own_faults      integer NOT NULL DEFAULT 0,
    retry_after     timestamptz,
    last_failure    text,
    mark            text CHECK (mark IN ('cancelled', 'gave_up')),
    heard_at        timestamptz NOT NULL,
    poll_at         timestamptz NOT NULL,
    polls           integer NOT NULL DEFAULT 0,
    missing_since   timestamptz,
    skip_reason     text,
    skip_since      timestamptz,
    skip_detail     jsonb NOT NULL DEFAULT '{}',
    failure_info    jsonb,
    created_at      timestamptz NOT NULL,
    seen_at         timestamptz NOT NULL,
    started_at      timestamptz,
    completed_at    timestamptz,
    updated_at      timestamptz NOT NULL
);
CREATE INDEX jobs_active ON jobs (created_at, job_id) WHERE status IN ('pending', 'running');
CREATE INDEX jobs_due ON jobs (poll_at) WHERE status IN ('pending', 'running');
CREATE INDEX jobs_runner ON jobs (runner_name) WHERE runner_name IS NOT NULL;
CREATE INDEX jobs_run ON jobs (run_id);
CREATE INDEX jobs_repo_recent ON jobs (seen_at DESC, repo);
CREATE INDEX jobs_by_status ON jobs (status, created_at DESC, job_id DESC);
CREATE INDEX jobs_by_entity ON jobs (entity_id, created_at DESC);
CREATE INDEX jobs_created ON jobs (created_at DESC, job_id DESC);

CREATE TABLE workers (
    name            text PRIMARY KEY,
    entity_id       bigint NOT NULL,
    entity_name     text NOT NULL,
    entity_type     text NOT NULL CHECK (entity_type IN ('Organization', 'User')),
    repo            text CHECK (entity_type = 'Organization' OR repo IS NOT NULL),
    app_id          text NOT NULL,
    installation_id bigint NOT NULL,
    labels          text[] NOT NULL,
    pool            text NOT NULL,
    image           text NOT NULL,
    made_for        bigint,
    node            text,
    group_id        bigint,
    runner_id       bigint,
    runner_version  text,
    job_id          bigint,
    status          text NOT NULL CHECK (status IN ('pending', 'running', 'completed', 'failed')),
    ending_reason   text,
    ending_since    timestamptz,
    online_at       timestamptz,
    idle_since      timestamptz,
    not_busy_since  timestamptz,
    read_at         timestamptz,
    create_rv       bigint,
    failure_reason  text,
    failure_info    jsonb,
    created_at      timestamptz NOT NULL,
    jit_at          timestamptz,
    pod_at          timestamptz,
    running_at      timestamptz,
    pod_ended_at    timestamptz,
    completed_at    timestamptz,
    updated_at      timestamptz NOT NULL
);
CREATE INDEX workers_live ON workers (created_at, name) WHERE status IN ('pending', 'running');
CREATE INDEX workers_holding ON workers (name) WHERE pod_at IS NOT NULL AND pod_ended_at IS NULL;
CREATE INDEX workers_created ON workers (created_at DESC, name);
CREATE INDEX workers_by_status ON workers (status, created_at DESC, name);
CREATE INDEX workers_ended ON workers (completed_at DESC) WHERE status IN ('completed', 'failed');
CREATE INDEX workers_scopes ON workers (created_at DESC, installation_id);
CREATE INDEX workers_made_for ON workers (made_for) WHERE made_for IS NOT NULL;

CREATE TABLE events (
    id              bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at              timestamptz NOT NULL,
    source          text NOT NULL CHECK (source IN ('webhook', 'pull', 'controller', 'schedule', 'admin')),
    kind            text NOT NULL,
    outcome         text,
    delivery        text,
    job_id          bigint,
    worker          text,
    entity_id       bigint,
    installation_id bigint,
    app_id          text,
    who             text,
    detail          jsonb NOT NULL DEFAULT '{}'
);
CREATE UNIQUE INDEX events_delivery ON events (delivery) WHERE delivery IS NOT NULL;
CREATE INDEX events_job ON events (job_id, at) WHERE job_id IS NOT NULL;
CREATE INDEX events_worker ON events (worker, at) WHERE worker IS NOT NULL;
CREATE INDEX events_installation ON events (installation_id, id DESC) WHERE kind LIKE 'installation%';
CREATE INDEX events_at ON events (at DESC);

CREATE TABLE holds (
    scope           text NOT NULL CHECK (scope IN ('pool', 'entity', 'board')),
    target          text NOT NULL,
    why             text NOT NULL CHECK (why IN ('pause', 'drain', 'breaker', 'quiet_hours')),
    until           timestamptz,
    who             text NOT NULL,
    note            text NOT NULL DEFAULT '',
    level           integer NOT NULL DEFAULT 1,
    created_at      timestamptz NOT NULL,
    PRIMARY KEY (scope, target, why)
);

CREATE TABLE boards (
    node            text PRIMARY KEY,
    board           text,
    state           text NOT NULL,
    slots           integer NOT NULL,
    worker          text,
    heartbeat_at    timestamptz NOT NULL,
    updated_at      timestamptz NOT NULL
);

CREATE TABLE leader (
    id              integer PRIMARY KEY DEFAULT 1 CHECK (id = 1),
    holder          text NOT NULL,
    epoch           bigint NOT NULL,
    since           timestamptz NOT NULL
);
INSERT INTO leader (id, holder, epoch, since) VALUES (1, '', 0, 'epoch');
