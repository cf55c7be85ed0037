-- What the core has this room do: see base/hooks.sql.
do $$
begin
    perform millrace.turns_are('{"document changes": 1}');
    perform millrace.hooks_are('documents', '[
        {"event": "expire", "function": "documents_expire", "position": 20},
        {"event": "erase", "function": "documents_erase_person", "position": 60},
        {"event": "why_queue", "function": "document_why_queue", "position": 20},
        {"event": "why_ended", "function": "document_why_ended", "position": 20},
        {"event": "measure", "function": "document_measures", "position": 30},
        {"event": "answered", "function": "document_answered", "position": 10},
        {"event": "state", "function": "document_status_part", "position": 30},
        {"event": "kinds", "function": "document_kinds", "position": 20},
        {"event": "rows", "function": "document_kinds", "position": 20},
        {"event": "keeps", "function": "document_keeps", "position": 20},
        {"event": "export", "function": "documents_export_person", "position": 60}
    ]');
end $$;
