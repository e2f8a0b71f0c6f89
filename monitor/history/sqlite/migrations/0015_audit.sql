-- +goose Up

-- Records of other things than commands (history.AuditRecord). Empty in records that were written before.
ALTER TABLE audit ADD COLUMN kind TEXT NOT NULL DEFAULT '';
ALTER TABLE audit ADD COLUMN outcome TEXT NOT NULL DEFAULT '';
ALTER TABLE audit ADD COLUMN method TEXT NOT NULL DEFAULT '';
ALTER TABLE audit ADD COLUMN role TEXT NOT NULL DEFAULT '';
ALTER TABLE audit ADD COLUMN endpoint TEXT NOT NULL DEFAULT '';

-- What lists are filtered by; SQLite adds the record's number to each.
CREATE INDEX audit_by_kind ON audit (kind);
CREATE INDEX audit_by_outcome ON audit (outcome);
CREATE INDEX audit_by_actor ON audit (actor);
CREATE INDEX audit_by_time ON audit (at);
