-- What the rooms of the core below have this one do: see base/hooks.sql.
do $$
begin
    perform millrace.hooks_are('operating', '[
        {"event": "why_failed", "function": "operating_why_failed", "position": 90},
        {"event": "why_running", "function": "operating_why_running", "position": 10}
    ]');
end $$;
