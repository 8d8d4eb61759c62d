-- serves: 0.1.0
-- How soon the occurrences of a schedule have their turn, 1 to 10; a program that does not know it writes none.

ALTER TABLE schedules ADD COLUMN priority integer NOT NULL DEFAULT 10;
