-- serves: 0.1.0
-- What was resumed by hand: failures before that moment do not hold a board or pool any more.

CREATE TABLE pardons (
    scope           text NOT NULL CHECK (scope IN ('pool', 'board')),
    target          text NOT NULL,
    at              timestamptz NOT NULL,
    PRIMARY KEY (scope, target)
);
