-- What the core has this room do: see base/hooks.sql.
do $$
begin
    perform millrace.hooks_are('people', '[
        {"event": "expire", "function": "people_expire", "position": 60},
        {"event": "expire", "function": "day_counts_expire", "position": 61},
        {"event": "reader", "function": "person_reads", "position": 10},
        {"event": "erase", "function": "profile_erase_person", "position": 115, "name": "notices"},
        {"event": "erase", "function": "members_erase_person", "position": 125, "name": "quests"},
        {"event": "export", "function": "people_export_person", "position": 10}
    ]');
end $$;
