-- Since when no worker that looked at a target was allowed to go there; null: one has been.

alter table millrace.webhook add column passed_since timestamptz;
