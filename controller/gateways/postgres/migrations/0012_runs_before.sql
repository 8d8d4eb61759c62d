-- serves: 0.1.0
-- Which runs GitHub listed before a workflow was first asked to start: none of them is the one that was started then.

ALTER TABLE occurrences ADD COLUMN runs_before bigint[] NOT NULL DEFAULT '{}';
