-- What the core has this room do: see base/hooks.sql.
do $$
begin
    perform millrace.hooks_are('media', '[
        {"event": "avatar", "function": "avatar_keep", "position": 10},
        {"event": "expire", "function": "media_expire", "position": 90},
        {"event": "erase", "function": "media_erase_person", "position": 80},
        {"event": "rows", "function": "media_kinds", "position": 50},
        {"event": "check", "function": "media_check_asked", "position": 10},
        {"event": "export", "function": "media_export_person", "position": 80}
    ]');
end $$;
