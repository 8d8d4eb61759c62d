-- serves: 0.1.0
-- The warm windows that are open or ended moments ago, read in every iteration.

CREATE INDEX occurrences_warm ON occurrences (warm_until) WHERE warm_until IS NOT NULL;
