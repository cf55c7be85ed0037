-- What the core has this room do: see base/hooks.sql.
do $$
begin
    perform millrace.turns_are('{"events": 1}');
    perform millrace.hooks_are('events', '[
        {"event": "expire", "function": "events_expire", "position": 10},
        {"event": "erase", "function": "events_erase_person", "position": 90},
        {"event": "export", "function": "events_export_person", "position": 115}
    ]');
end $$;
