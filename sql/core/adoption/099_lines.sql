-- Each room gets a line of migrations of its own. Rows from before are the core's.
alter table millrace.migration add column line text not null default 'core';
alter table millrace.migration drop constraint migration_pkey, add primary key (line, number);

-- What keyed hashes are made with is not mail's alone.
update millrace.setting set name = 'salt' where name = 'mail_salt';
