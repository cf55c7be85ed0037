-- What the core has this room do: see base/hooks.sql.
do $$
begin
    perform millrace.hooks_are('subscriptions', '[
        {"event": "expire", "function": "subscriptions_expire", "position": 120},
        {"event": "erase", "function": "subscriptions_erase_person", "position": 130},
        {"event": "measure", "function": "subscription_measures", "position": 70},
        {"event": "quota_said", "function": "subscription_quota_said", "position": 10}
    ]');
end $$;
