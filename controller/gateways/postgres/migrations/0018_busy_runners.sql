-- serves: 0.1.0
-- Since when GitHub lists a runner as busy: if no job of it is known by then, it works for somebody unknown to us.

ALTER TABLE workers ADD COLUMN busy_since timestamptz;
