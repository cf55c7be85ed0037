-- What the core has this room do: see base/hooks.sql.
do $$
begin
    perform millrace.turns_are('{"check-in changes": 1}');
    perform millrace.hooks_are('checkins', '[
        {"event": "expire", "function": "checkins_expire", "position": 30},
        {"event": "expire", "function": "consents_expire", "position": 35},
        {"event": "expire", "function": "places_expire", "position": 40},
        {"event": "erase", "function": "checkins_erase_person", "position": 40},
        {"event": "knows", "function": "contact_knows", "position": 10},
        {"event": "lanes", "function": "checkin_lanes", "position": 30},
        {"event": "why_queue", "function": "checkin_why_queue", "position": 50},
        {"event": "measure", "function": "checkin_measures", "position": 40},
        {"event": "erase_address", "function": "checkins_erase_address", "position": 10},
        {"event": "state", "function": "checkin_status_part", "position": 40},
        {"event": "export", "function": "checkins_export_person", "position": 30}
    ]');
end $$;
