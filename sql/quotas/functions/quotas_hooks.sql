-- What the core has this room do: see base/hooks.sql.
do $$
begin
    perform millrace.hooks_are('quotas', '[
        {"event": "export", "function": "quotas_export_person", "position": 95}
    ]');
end $$;
