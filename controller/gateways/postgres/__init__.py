"""The store: PostgreSQL 14+, plain SQL, psycopg 3. SQL is a constant above the method that runs it."""
