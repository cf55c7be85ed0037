-- What the core has this room do: see base/hooks.sql.
do $$
begin
    perform millrace.hooks_are('gateway', '[
        {"event": "expire", "function": "gateway_expire", "position": 200},
        {"event": "erase", "function": "gateway_erase_person", "position": 100},
        {"event": "export", "function": "gateway_export_person", "position": 130}
    ]');
end $$;
