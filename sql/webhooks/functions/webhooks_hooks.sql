-- What the core has this room do: see base/hooks.sql.
do $$
begin
    perform millrace.hooks_are('webhooks', '[
        {"event": "expire", "function": "webhook_tidy", "position": 110},
        {"event": "lanes", "function": "webhook_lanes", "position": 20},
        {"event": "why_queue", "function": "webhook_why_queue", "position": 40},
        {"event": "served", "function": "webhook_served", "position": 30},
        {"event": "measure", "function": "webhook_measures", "position": 60},
        {"event": "erase", "function": "deliveries_erase_person", "position": 85, "name": "events"},
        {"event": "state", "function": "webhook_status_part", "position": 60}
    ]');
end $$;
