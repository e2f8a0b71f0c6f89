-- Indexes of fields that are rarely asked for. A search by one of them reads tasks in the order of the list.
DROP INDEX tasks_by_client;
DROP INDEX tasks_by_exchange;
DROP INDEX tasks_by_routing_key;
DROP INDEX tasks_by_eta;
DROP INDEX tasks_by_expires;
