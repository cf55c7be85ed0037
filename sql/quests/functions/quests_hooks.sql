-- What the core has this room do: see base/hooks.sql.
do $$
begin
    perform millrace.hooks_are('quests', '[
        {"event": "erase", "function": "quests_erase_person", "position": 120},
        {"event": "measure", "function": "quest_measures", "position": 50},
        {"event": "answered", "function": "card_answered", "position": 30},
        {"event": "state", "function": "quest_status_part", "position": 20},
        {"event": "kinds", "function": "quest_kinds", "position": 30},
        {"event": "rows", "function": "quest_kinds", "position": 30},
        {"event": "export", "function": "quests_export_person", "position": 20}
    ]');
end $$;
