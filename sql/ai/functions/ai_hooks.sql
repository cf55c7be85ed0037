-- What the core has this room do: see base/hooks.sql.
do $$
begin
    perform millrace.hooks_are('ai', '[
        {"event": "expire", "function": "ai_expire", "position": 80},
        {"event": "erase", "function": "ai_erase_person", "position": 20}
    ]');
end $$;
