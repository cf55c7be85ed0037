-- What the core has this room do: see base/hooks.sql.
do $$
begin
    perform millrace.hooks_are('lessons', '[
        {"event": "erase", "function": "lessons_erase_person", "position": 70},
        {"event": "export", "function": "lessons_export_person", "position": 70}
    ]');
end $$;
