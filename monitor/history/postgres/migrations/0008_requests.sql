-- What nodes that follow ask of the one that leads, until that has done it and saved it.
CREATE TABLE requests (
    request bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    events bytea, -- to fold, null if a person has judged a task
    task text COLLATE "C",
    dismissed boolean, -- else reinstated
    who text COLLATE "C"
);
CREATE TRIGGER requests_told AFTER INSERT ON requests FOR EACH ROW EXECUTE FUNCTION told('requests');
