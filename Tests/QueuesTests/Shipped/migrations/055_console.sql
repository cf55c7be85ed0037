-- Alarms are listed by when they were raised.
create index alarm_raised on millrace.alarm (raised_at);
