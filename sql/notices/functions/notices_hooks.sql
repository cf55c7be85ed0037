-- What the core has this room do: see base/hooks.sql.
do $$
begin
    perform millrace.hooks_are('notices', '[
        {"event": "expire", "function": "notices_expire", "position": 50},
        {"event": "erase", "function": "notices_erase_person", "position": 110},
        {"event": "lanes", "function": "notice_lanes", "position": 10},
        {"event": "why_queue", "function": "notice_why_queue", "position": 30},
        {"event": "served", "function": "notice_served", "position": 20},
        {"event": "measure", "function": "notice_measures", "position": 20},
        {"event": "erase", "function": "notice_mails_erase_person", "position": 5, "name": "mail"},
        {"event": "approval_tell", "function": "notice_of_approval", "position": 10},
        {"event": "notice", "function": "notice_status_asked", "position": 10},
        {"event": "state", "function": "notice_status_part", "position": 50},
        {"event": "export", "function": "notices_export_person", "position": 40}
    ]');
end $$;
