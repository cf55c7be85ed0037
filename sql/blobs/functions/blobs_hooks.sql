-- What the core has this room do: see base/hooks.sql.
do $$
begin
    perform millrace.hooks_are('blobs', '[
        {"event": "erase", "function": "blobs_erase_person", "position": 61, "name": "documents"}
    ]');
end $$;
