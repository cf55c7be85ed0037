-- What the core has this room do: see base/hooks.sql.
do $$
begin
    perform millrace.hooks_are('queue', '[
        {"event": "erase", "function": "approvals_erase_person", "position": 30, "name": "approvals"},
        {"event": "erase", "function": "jobs_erase_person", "position": 910, "name": "jobs"},
        {"event": "export", "function": "jobs_export_person", "position": 140, "name": "jobs"}
    ]');
end $$;
