-- What lists check of where they continue.

create or replace function millrace.valid_page(page int) returns void
language plpgsql immutable as $$
begin
    if page is null or page not between 1 and millrace.most('page') then
        perform millrace.refuse('a page has 1 to 500 rows', 'page');
    end if;
end $$;

-- Where a list continues: the id, or the day, of the last row.
create or replace function millrace.after_id(after text) returns uuid
language plpgsql immutable as $$
begin
    return after::uuid;
exception when invalid_text_representation then
    perform millrace.refuse('after is not an id', 'after', 'Give the id of the last row.');
end $$;

create or replace function millrace.after_day(after text) returns date
language plpgsql immutable as $$
begin
    if after !~ '^[0-9]{4,7}-[0-9]{2}-[0-9]{2}$' then
        perform millrace.refuse('after is not a day', 'after', 'Give the day of the last row, as 2030-01-31.');
    end if;
    return after::date;
exception when datetime_field_overflow then
    perform millrace.refuse('after is not a day', 'after', 'Give the day of the last row, as 2030-01-31.');
end $$;

-- Where a list continues: a number, as the last row gave it.
create or replace function millrace.after_number(after text) returns bigint
language plpgsql immutable as $$
begin
    if after !~ '^[0-9]{1,18}$' then
        perform millrace.refuse('after is malformed', 'after', 'Give what the last row says.');
    end if;
    return after::bigint;
end $$;
