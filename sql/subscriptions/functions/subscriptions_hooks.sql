-- What the core has this room do: see base/hooks.sql.
do $$
begin
    perform millrace.hooks_are('subscriptions', '[
        {"event": "expire", "function": "subscriptions_expire", "position": 120},
        {"event": "erase", "function": "subscriptions_erase_person", "position": 130},
        {"event": "measure", "function": "subscription_measures", "position": 70},
        {"event": "quota_warned", "function": "subscription_quota_warned", "position": 10},
        {"event": "quota_said", "function": "subscription_quota_said", "position": 10},
        {"event": "rows", "function": "subscription_kinds", "position": 60},
        {"event": "state", "function": "subscription_status_part", "position": 80},
        {"event": "keeps", "function": "subscription_keeps", "position": 30},
        {"event": "export", "function": "subscriptions_export_person", "position": 90}
    ]');
end $$;
