-- The list is in this order but for tasks of one moment, which are sorted as they are read: an entry takes a third.
DROP INDEX tasks_by_clock;
CREATE INDEX tasks_by_clock ON tasks (clock, micros);

-- Tasks whose receipts are less than 10 s apart are found by the last one.
DROP INDEX tasks_divided;
CREATE INDEX tasks_divided ON tasks USING gist (int8range(first_receipt, last_receipt)) WHERE first_receipt < last_receipt - 10000000;
