-- serves: 0.1.0

-- Whether nothing was ever heard of a delivery or its job; whoever asks has both to itself until its transaction ends.
-- Volatile, because such a function looks anew after it has waited for the locks, while the statement that calls it
-- sees only what was committed when it began. So `INSERT ... WHERE unheard_of(...)` is safe by itself.
CREATE FUNCTION unheard_of(delivery_guid text, job bigint) RETURNS boolean LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    PERFORM pg_advisory_xact_lock(hashtextextended(current_schema() || ' delivery ' || delivery_guid, 0)),
        pg_advisory_xact_lock(hashtextextended(current_schema() || ' job ' || job, 0));
    RETURN NOT EXISTS (SELECT FROM events e WHERE e.delivery = delivery_guid)
        AND NOT EXISTS (SELECT FROM events e WHERE e.job_id = job);
END
$$;
