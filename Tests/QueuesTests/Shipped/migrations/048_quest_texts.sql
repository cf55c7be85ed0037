-- What the catalogue calls a quest, and what it says of it.
alter table millrace.quest_item add column name text, add column description text;
