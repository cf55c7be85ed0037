-- What the core has this room do: see base/hooks.sql.
do $$
begin
    perform millrace.hooks_are('chat', '[
        {"event": "expire", "function": "chat_expire", "position": 70},
        {"event": "erase", "function": "chat_erase_person", "position": 50},
        {"event": "answered", "function": "chat_answered", "position": 20},
        {"event": "export", "function": "chat_export_person", "position": 50}
    ]');
end $$;
