-- Version 2 of the layout "objects": locks on objects, and the operations that have begun.

DO $$
BEGIN
    IF EXISTS (
        SELECT FROM pg_locks WHERE locktype = 'advisory' AND objsubid = 2 AND granted AND classid = '{S}.states'::regclass::oid
        AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
    ) THEN
        RAISE EXCEPTION 'a program of an earlier version holds the lock of a state in this schema; run init again when it has ended';
    END IF;
END
$$;

DROP TABLE {S}.locks;

-- Requests for locks, granted or waiting, in the order of their numbers. A request is alive while its session holds the advisory lock
-- with that number.
CREATE TABLE {S}.locks (
    id integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    state_id integer NOT NULL REFERENCES {S}.states ON DELETE CASCADE,
    lock_id text NOT NULL,
    info text NOT NULL,
    backend_pid integer NOT NULL,
    granted boolean NOT NULL DEFAULT false,
    requested_at timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX locks_by_state ON {S}.locks (state_id);

-- The claims of a request. The key of the whole state is empty.
CREATE TABLE {S}.lock_claims (
    request integer NOT NULL REFERENCES {S}.locks ON DELETE CASCADE,
    state_id integer NOT NULL,
    key text NOT NULL,
    mode text NOT NULL CHECK (mode IN ('exclusive', 'shared', 'within')),
    address text NOT NULL,
    PRIMARY KEY (request, key, mode)
);
CREATE INDEX lock_claims_by_key ON {S}.lock_claims (state_id, key, request);

-- Operations that have begun and have no outcome yet.
CREATE TABLE {S}.operations (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    state_id integer NOT NULL REFERENCES {S}.states ON DELETE CASCADE,
    run_id bigint NOT NULL REFERENCES {S}.runs ON DELETE CASCADE,
    address text NOT NULL,
    deposed text NOT NULL,
    -- Set for provisioners and actions, which run inside another operation on the object.
    provision boolean NOT NULL,
    action text NOT NULL,
    intent json NOT NULL
);
CREATE INDEX operations_by_run ON {S}.operations (run_id, address);
CREATE INDEX operations_by_state ON {S}.operations (state_id);

CREATE INDEX runs_without_end ON {S}.runs (state_id) WHERE result IS NULL;

CREATE VIEW {S}.current_locks AS
SELECT s.name AS workspace, l.lock_id, l.info::json->>'Operation' AS operation, l.info::json->>'Who' AS who, l.requested_at,
    CASE WHEN l.granted THEN 'held' ELSE 'waiting' END AS status,
    EXISTS (SELECT FROM {S}.lock_claims c WHERE c.request = l.id AND c.key = '' AND c.mode = 'exclusive') AS whole_state,
    ARRAY(SELECT c.address FROM {S}.lock_claims c WHERE c.request = l.id AND c.mode = 'exclusive' AND c.key <> '' ORDER BY c.address)
    AS addresses
FROM {S}.locks l JOIN {S}.states s ON s.id = l.state_id
WHERE EXISTS (
    SELECT FROM pg_locks p WHERE p.locktype = 'advisory' AND p.objsubid = 2 AND p.granted AND p.classid = '{S}.locks'::regclass::oid
    AND p.objid::bigint = l.id AND p.database = (SELECT oid FROM pg_database WHERE datname = current_database())
);
