-- Other processes are told, with a topic, that what pages show has changed. Row by row, since a statement may change none; equal
-- notifications of a transaction are one.
CREATE FUNCTION told() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_notify('umbel_' || md5(TG_TABLE_SCHEMA), TG_ARGV[0]);
    RETURN NULL;
END $$;
CREATE TRIGGER outbox_told AFTER INSERT ON outbox FOR EACH ROW EXECUTE FUNCTION told('outbox');
CREATE TRIGGER outbox_change_told AFTER UPDATE ON outbox
    FOR EACH ROW WHEN (NEW.state <> OLD.state OR NEW.answers <> OLD.answers OR NEW.error <> OLD.error) EXECUTE FUNCTION told('outbox');
CREATE TRIGGER views_told AFTER INSERT OR UPDATE OR DELETE ON views FOR EACH ROW EXECUTE FUNCTION told('views');
CREATE TRIGGER marks_told AFTER INSERT OR DELETE ON marks FOR EACH ROW EXECUTE FUNCTION told('marks');
CREATE TRIGGER failures_told AFTER UPDATE OF resolved, note, assignee ON failures FOR EACH ROW EXECUTE FUNCTION told('failures');
