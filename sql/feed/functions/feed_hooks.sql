-- What the core has this room do: see base/hooks.sql.
do $$
begin
    perform millrace.turns_are('{"feed": 1}');
    perform millrace.hooks_are('feed', '[
        {"event": "expire", "function": "feed_expire", "position": 1000},
        {"event": "erase", "function": "feed_erase_person", "position": 900},
        {"event": "export", "function": "feed_export_person", "position": 120}
    ]');
end $$;
