-- Version 1 of the layout "objects". {S} is the quoted name of the schema.

CREATE TABLE {S}.states (
    id integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name text NOT NULL UNIQUE,
    -- Number of writes; 0 for a row that was created only to be locked.
    revision bigint NOT NULL DEFAULT 0,
    lineage text NOT NULL DEFAULT '',
    serial bigint NOT NULL DEFAULT 0,
    terraform_version text NOT NULL DEFAULT '',
    check_results json NOT NULL DEFAULT 'null',
    rest json NOT NULL DEFAULT '{}',
    updated_at timestamptz NOT NULL DEFAULT now()
);

CREATE TABLE {S}.runs (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    state_id integer NOT NULL REFERENCES {S}.states ON DELETE CASCADE,
    lock_id text NOT NULL,
    operation text NOT NULL,
    who text NOT NULL,
    program_version text NOT NULL,
    started_at timestamptz NOT NULL DEFAULT now(),
    ended_at timestamptz,
    -- Null while the run holds its lock; then 'finished', or 'interrupted' if its session ended first.
    result text CHECK (result IN ('finished', 'interrupted'))
);
CREATE INDEX runs_by_state ON {S}.runs (state_id, id);

CREATE TABLE {S}.objects (
    state_id integer NOT NULL REFERENCES {S}.states ON DELETE CASCADE,
    -- SHA-256 of the parts of the address: these may be longer than an index takes.
    key text NOT NULL,
    address text NOT NULL,
    module text NOT NULL,
    mode text NOT NULL,
    type text NOT NULL,
    name text NOT NULL,
    instance_key text NOT NULL,
    deposed text NOT NULL,
    provider text NOT NULL,
    status text NOT NULL,
    schema_version bigint NOT NULL,
    attributes jsonb,
    -- The text, if the column before does not restore it.
    attributes_exact json,
    sensitive_attributes json NOT NULL,
    private bytea,
    dependencies text[] NOT NULL,
    create_before_destroy boolean NOT NULL,
    rest json NOT NULL,
    run_id bigint NOT NULL REFERENCES {S}.runs ON DELETE CASCADE,
    updated_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (state_id, key)
);

CREATE TABLE {S}.outputs (
    state_id integer NOT NULL REFERENCES {S}.states ON DELETE CASCADE,
    name text NOT NULL,
    value jsonb,
    value_exact json,
    type json NOT NULL,
    sensitive boolean NOT NULL,
    rest json NOT NULL,
    run_id bigint NOT NULL REFERENCES {S}.runs ON DELETE CASCADE,
    PRIMARY KEY (state_id, name)
);

CREATE TABLE {S}.history (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    state_id integer NOT NULL REFERENCES {S}.states ON DELETE CASCADE,
    run_id bigint NOT NULL REFERENCES {S}.runs ON DELETE CASCADE,
    revision bigint NOT NULL,
    kind text NOT NULL CHECK (kind IN ('state', 'object', 'output')),
    address text NOT NULL,
    module text NOT NULL,
    mode text NOT NULL,
    type text NOT NULL,
    name text NOT NULL,
    instance_key text NOT NULL,
    deposed text NOT NULL,
    -- Parts of the document of the state, as texts; null if there was nothing, or is nothing any more.
    before json,
    after json
);
CREATE INDEX history_by_revision ON {S}.history (state_id, revision);
CREATE INDEX history_by_name ON {S}.history USING hash (name);

-- The holder of each lock. The lock itself is an advisory lock of the holder's session.
CREATE TABLE {S}.locks (
    state_id integer PRIMARY KEY REFERENCES {S}.states ON DELETE CASCADE,
    lock_id text NOT NULL,
    info text NOT NULL,
    backend_pid integer NOT NULL,
    acquired_at timestamptz NOT NULL DEFAULT now()
);

-- Sets the values at sensitive paths to null. Where a path cannot be followed to its end, the value where it stops is hidden as a
-- whole, and all attributes if it stops at the beginning.
CREATE FUNCTION {S}.without_sensitive(type text, attributes jsonb, paths json) RETURNS jsonb LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
    path json;
    step json;
    key text;
    place text[];
    here jsonb;
BEGIN
    FOR path IN SELECT json_array_elements(paths) LOOP
        place := '{}';
        here := attributes;
        FOR step IN SELECT json_array_elements(path) LOOP
            IF step->>'type' = 'get_attr' THEN
                key := step->>'value';
            ELSIF json_typeof(step->'value'->'value') IN ('string', 'number') THEN
                key := step->'value'->>'value';
            ELSE
                EXIT;
            END IF;
            -- A value of an attribute of any type is stored with its type, in an object around it, which the path does not have.
            EXIT WHEN cardinality(place) > 0 AND jsonb_typeof(here) = 'object' AND here ? 'type' AND here ? 'value';
            here := attributes #> (place || key);
            EXIT WHEN here IS NULL;
            place := place || key;
        END LOOP;
        IF cardinality(place) = 0 THEN
            RETURN NULL;
        END IF;
        attributes := jsonb_set(attributes, place, 'null', false);
        -- It repeats its input, and the state has the path of the input only.
        IF type = 'terraform_data' AND place[1] = 'input' THEN
            attributes := jsonb_set(attributes, '{output}', 'null', false);
        END IF;
    END LOOP;
    RETURN attributes;
EXCEPTION WHEN others THEN
    RETURN NULL;
END
$$;

-- The views that "help postgres" documents. Their columns stay; later versions may add some at the end.

CREATE VIEW {S}.current_objects AS
SELECT s.name AS workspace, o.address, o.module, o.mode, o.type, o.name, o.instance_key, o.deposed, o.provider, o.status,
    o.schema_version, o.attributes, o.dependencies, o.run_id, o.updated_at
FROM {S}.objects o JOIN {S}.states s ON s.id = o.state_id;

CREATE VIEW {S}.public_objects AS
SELECT s.name AS workspace, o.address, o.module, o.mode, o.type, o.name, o.instance_key, o.deposed, o.provider, o.status,
    o.schema_version, {S}.without_sensitive(o.type, o.attributes, o.sensitive_attributes) AS attributes, o.dependencies, o.run_id,
    o.updated_at
FROM {S}.objects o JOIN {S}.states s ON s.id = o.state_id;

CREATE VIEW {S}.current_outputs AS
SELECT s.name AS workspace, o.name, o.value, o.type, o.sensitive, o.run_id
FROM {S}.outputs o JOIN {S}.states s ON s.id = o.state_id;

CREATE VIEW {S}.public_outputs AS
SELECT s.name AS workspace, o.name, CASE WHEN NOT o.sensitive THEN o.value END AS value, o.type, o.sensitive, o.run_id
FROM {S}.outputs o JOIN {S}.states s ON s.id = o.state_id;

CREATE VIEW {S}.changes AS
SELECT s.name AS workspace, r.id AS run_id, r.operation, r.who, r.program_version, r.started_at, r.ended_at,
    coalesce(r.result, 'running') AS result, h.revision, h.kind, h.address, h.deposed,
    CASE WHEN h.before IS NULL THEN 'create' WHEN h.after IS NULL THEN 'delete' ELSE 'update' END AS action
FROM {S}.history h JOIN {S}.runs r ON r.id = h.run_id JOIN {S}.states s ON s.id = h.state_id
WHERE h.kind <> 'state';
