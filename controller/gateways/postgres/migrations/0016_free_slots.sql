-- serves: 0.1.0
-- How many slots of a board are free: one that offers several may be busy and free at once. Null: an older program wrote it.

ALTER TABLE boards ADD COLUMN free integer;
