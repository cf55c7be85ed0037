-- What the core has this room do: see base/hooks.sql.
do $$
begin
    perform millrace.hooks_are('ai', '[
        {"event": "expire", "function": "ai_expire", "position": 80},
        {"event": "erase", "function": "ai_erase_person", "position": 20},
        {"event": "rows", "function": "ai_kinds", "position": 40},
        {"event": "state", "function": "ai_status_part", "position": 70},
        {"event": "export", "function": "ai_export_person", "position": 100}
    ]');
end $$;
