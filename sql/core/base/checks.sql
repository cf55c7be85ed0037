-- What many doors check of what they are given.

create or replace function millrace.valid_name(name text, field text) returns void
language plpgsql immutable as $$
begin
    if name is null or length(name) not between 1 and millrace.most('name') or name ~ E'[\\u0001-\\u001f\\u007f-\\u009f]' then
        perform millrace.refuse(format('%s is missing, too long, or has control characters', field), field, 'Give 1 to 128 characters.');
    end if;
end $$;
