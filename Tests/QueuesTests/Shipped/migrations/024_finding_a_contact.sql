-- A person who leaves is found in others' alarms and in the feed by an index, and not by reading them all.

create index alarm_event_contact on millrace.alarm_event (contact) where contact is not null;
create index alarm_event_by on millrace.alarm_event (by) where by is not null;
create index alarm_acknowledged_by on millrace.alarm (acknowledged_by) where acknowledged_by is not null;
create index checkin_change_contact on millrace.checkin_change ((data ->> 'contact')) where data ? 'contact';
-- What was sent of an alarm is found from the notice.
create index alarm_event_notice on millrace.alarm_event (notice) where notice is not null;
