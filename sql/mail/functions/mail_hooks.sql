-- What the core has this room do: see base/hooks.sql.
do $$
begin
    perform millrace.turns_are('{"mail changes": 1, "mail forsaken": 1, "mail retire": 1, "mail sender": 1024, "mail domain": 1024}');
    perform millrace.hooks_are('mail', '[
        {"event": "erase", "function": "mails_erase_person", "position": 10},
        {"event": "why_queue", "function": "mail_why_queue", "position": 10},
        {"event": "why_later", "function": "mail_why_later", "position": 10},
        {"event": "why_ended", "function": "mail_why_ended", "position": 10},
        {"event": "why_failed", "function": "mail_why_failed", "position": 10},
        {"event": "served", "function": "mail_served", "position": 10},
        {"event": "measure", "function": "mail_measures", "position": 10},
        {"event": "state", "function": "mail_status_part", "position": 10},
        {"event": "kinds", "function": "mail_kinds", "position": 10},
        {"event": "rows", "function": "mail_kinds", "position": 10},
        {"event": "keeps", "function": "mail_keeps", "position": 10},
        {"event": "export", "function": "mails_export_person", "position": 110}
    ]');
end $$;
