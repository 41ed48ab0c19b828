-- Version 3 of the layout "objects": finds the entry of a revision without reading those of its objects.

CREATE INDEX history_states ON {S}.history (state_id, revision) WHERE kind = 'state';
