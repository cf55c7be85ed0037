-- What became of mails, as events: for the app's server, which hears it from a webhook and need not ask for each message.

-- Switches the events of mails on or off. They are off at first, because a mail has two of them and most apps read none. False: it was so already.
create or replace function millrace.mail_events_set(is_on boolean, caller millrace.caller_name default current_user) returns boolean
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
begin
    if mail_events_set.is_on is null then
        perform millrace.refuse('is_on is missing', 'is_on', 'Give true or false.');
    end if;
    if not millrace.setting_put('mail_events', case when mail_events_set.is_on then 'on' end) then
        return false;
    end if;
    perform millrace.audited('mail.events', case when mail_events_set.is_on then 'on' else 'off' end, null, caller => mail_events_set.caller);
    return true;
end $$;
select millrace.door_is('mail', 'mail_events_set', 'admin', 'staff', audited => true);

-- No address and no content: the app's server knows the message by its id. In millrace.mail_traces a worker that records its sendings names the
-- run of each; the events of providers come later, and belong to what sent the mail, as long as its job is there.
create or replace function millrace.mail_event_say() returns trigger
language plpgsql as $$
begin
    if exists (select from millrace.setting s where s.name = 'mail_events') then
        perform millrace.event_say('millrace.mail.' || new.status, '/millrace/mail', new.id::text, new.tenant, jsonb_strip_nulls(jsonb_build_object(
            'message_id', new.id, 'kind', new.kind, 'status', new.status, 'service', new.service, 'error', new.error_class, 'person', new.person)),
            the_trace => coalesce(
                millrace.trace_read(nullif(current_setting('millrace.mail_traces', true), '')::jsonb ->> new.id::text, null),
                millrace.trace_now(), (select millrace.trace_of(j.metadata) from millrace.job j where j.id = new.job)));
    end if;
    return null;
end $$;

do $$
begin
    if not exists (select from pg_trigger g where g.tgrelid = 'millrace.mail'::regclass and g.tgname = 'an_event_says_what_became_of_a_mail') then
        create trigger an_event_says_what_became_of_a_mail after update of status on millrace.mail for each row
            when (new.status <> old.status and new.status in ('accepted', 'delayed', 'delivered', 'bounced', 'complained', 'failed', 'suppressed', 'expired',
                                                              'cancelled', 'parked'))
            execute function millrace.mail_event_say();
    end if;
end $$;
