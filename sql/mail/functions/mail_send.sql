-- Sending mail: checks the message, stores it, and enqueues its job, in the caller's transaction.

create or replace function millrace.mail_rank(status text) returns int
language sql immutable parallel safe as $$
    select array_position(array['scheduled', 'queued', 'sending', 'unknown', 'parked', 'accepted', 'delayed', 'delivered', 'bounced', 'complained',
        'failed', 'suppressed', 'expired', 'cancelled'], status)
$$;

-- The bare address of `Name <address>`, as addresses are compared.
create or replace function millrace.mail_bare(mailbox text) returns text
language sql immutable parallel safe as $$
    select lower(btrim(coalesce((regexp_match(mailbox, E'<([^<>]*)>\\s*$'))[1], mailbox)))
$$;

create or replace function millrace.mail_hash(address text) returns bytea
language sql stable as $$
    select sha256(convert_to((select s.value from millrace.setting s where s.name = 'salt') || chr(31) || millrace.mail_bare(address), 'UTF8'))
$$;

-- Refuses an address that could break out of its header line; the renderer of the message checks the rest of the syntax.
create or replace function millrace.mail_check_mailbox(mailbox text, field text) returns void
language plpgsql immutable as $$
declare
    advice text := 'Give local@host, or Name <local@host>: one address, no line breaks or other control characters.';
    bare text := millrace.mail_bare(mailbox);
    shown text := btrim(regexp_replace(mailbox, E'<[^<>]*>\\s*$', ''));
begin
    if mailbox is null or mailbox ~ E'[\\u0001-\\u001f\\u007f-\\u009f\\u2028\\u2029\\u202a-\\u202e\\u2066-\\u2069]' then
        perform millrace.refuse('an address is null or has control characters', field, advice);
    end if;
    if length(mailbox) > millrace.most('mailbox') or octet_length(bare) > 320 or length(split_part(bare, '@', 1)) > 64
        or bare !~ E'^[^\\s@<>()\\[\\],;:"\\\\]+@[^\\s@<>()\\[\\],;:"\\\\.]+(\\.[^\\s@<>()\\[\\],;:"\\\\.]+)*$' then
        perform millrace.refuse('an address is malformed', field, advice);
    end if;
    if position('<' in mailbox) > 0 and shown ~ E'[<>@\\\\]' then
        perform millrace.refuse('the name beside an address has brackets, a backslash or another address in it', field, advice);
    end if;
end $$;

create or replace function millrace.mail_texts(args jsonb, field text, most int) returns text[]
language plpgsql immutable as $$
declare
    given jsonb := args -> field;
    found text[];
begin
    if given is null or given = 'null' then
        return '{}';
    end if;
    if jsonb_typeof(given) <> 'array' or exists (select from jsonb_array_elements(given) e where jsonb_typeof(e) <> 'string') then
        perform millrace.refuse(format('%s is not a list of texts', field), field, 'Give for example ["ada@example.org"].');
    end if;
    found := array(select e from jsonb_array_elements_text(given) with ordinality x(e, n) order by n);
    if cardinality(found) > most then
        perform millrace.refuse(format('%s has %s addresses, more than the %s allowed', field, cardinality(found), most), field,
            'Send one message to each recipient: it can be tracked.', '53400', 'too_large');
    end if;
    perform millrace.mail_check_mailbox(e, field) from unnest(found) e;
    return found;
end $$;

create or replace function millrace.mail_check_headers(headers jsonb) returns void
language plpgsql immutable as $$
declare
    name text;
    value jsonb;
begin
    if jsonb_typeof(headers) <> 'object' then
        perform millrace.refuse('headers is not a JSON object', 'headers', 'Give for example {"X-Order": "7"}.');
    end if;
    if octet_length(headers::text) > millrace.most('headers') then
        perform millrace.refuse(format('headers take more than %s bytes', millrace.most('headers')), 'headers', null, '53400', 'too_large');
    end if;
    for name, value in select * from jsonb_each(headers) loop
        if name !~ '^[A-Za-z0-9!#$%&''*+^_`|~-]{1,76}$' then
            perform millrace.refuse(format('the header name %L is malformed', left(name, 60)), 'headers', 'Letters, digits and hyphens.');
        end if;
        if lower(name) = any (array['from', 'sender', 'to', 'cc', 'bcc', 'reply-to', 'subject', 'date', 'message-id', 'mime-version', 'return-path', 'received',
            'list-unsubscribe', 'list-unsubscribe-post', 'dkim-signature', 'resend-idempotency-key']) or lower(name) like 'content-%' then
            perform millrace.refuse(format('Millrace writes the header %s itself', left(name, 60)), 'headers', 'Leave it out; what you may choose has a parameter.');
        end if;
        if jsonb_typeof(value) <> 'string' or value #>> '{}' ~ E'[\\u0001-\\u001f\\u007f-\\u009f\\u2028\\u2029]' or octet_length(value #>> '{}') > 900 then
            perform millrace.refuse(format('the value of header %s is not text, too long, or has line breaks or control characters', left(name, 60)), 'headers');
        end if;
    end loop;
end $$;

-- The stored form of tags: a tag from a list has the value true.
create or replace function millrace.mail_tags(tags jsonb) returns jsonb
language sql immutable as $$
    select case when jsonb_typeof(tags) = 'array' then (select coalesce(jsonb_object_agg(t, 'true'), '{}') from jsonb_array_elements_text(tags) t)
                else coalesce(tags, '{}') end
$$;

create or replace function millrace.mail_check_tags(tags jsonb) returns void
language plpgsql immutable as $$
begin
    -- A list, as apps write it, or names with values, as providers report them.
    if jsonb_typeof(tags) = 'array' then
        if jsonb_array_length(tags) > 20 or exists (select from jsonb_array_elements(tags) t
                where jsonb_typeof(t) <> 'string' or t #>> '{}' !~ '^[A-Za-z0-9_-]{1,255}$') then
            perform millrace.refuse('tags has more than 20 entries, or a tag has characters other than letters, digits, _ and -', 'tags',
                'Give for example ["spring", "vip"].');
        end if;
        return;
    end if;
    if jsonb_typeof(tags) <> 'object' or (select count(*) from jsonb_each(tags)) > 20 then
        perform millrace.refuse('tags is not a JSON object of at most 20 names', 'tags', 'Give for example {"campaign": "spring"}.');
    end if;
    if exists (select from jsonb_each(tags) t(name, value)
                where name !~ '^[A-Za-z0-9_-]{1,255}$' or jsonb_typeof(value) <> 'string' or value #>> '{}' !~ '^[A-Za-z0-9_-]{1,255}$') then
        perform millrace.refuse('a tag has characters other than letters, digits, _ and -', 'tags', 'Providers take no others.');
    end if;
end $$;

-- Contents become blobs; the message names them by their hash. The size that counts is the one in base64.
create or replace function millrace.mail_attachments(given jsonb, the_owner text, the_tenant text, caller name) returns jsonb
language plpgsql volatile as $$
declare
    most constant bigint := millrace.most('attachments_bytes');
    one jsonb;
    kept jsonb := '[]';
    total bigint := 0;
    last_file text;                                       -- the one that is too much
    the_id bytea;
    the_size bigint;
    bytes bytea;
    the_upload bigint;
    n int;
begin
    if jsonb_typeof(given) <> 'array' or jsonb_array_length(given) > millrace.most('attachments') then
        perform millrace.refuse('attachments is not a list of at most 50', 'attachments', 'Give [{"filename": "a.pdf", "content_type": "application/pdf", "data": base64}].');
    end if;
    for one in select * from jsonb_array_elements(given) loop
        if jsonb_typeof(one) <> 'object' or exists (select from jsonb_object_keys(one) k where k not in ('filename', 'content_type', 'data', 'blob', 'content_id')) then
            perform millrace.refuse('an attachment may have only filename, content_type, data or blob, and content_id', 'attachments');
        end if;
        if coalesce(one ->> 'filename', '') !~ E'^[^/\\\\\\u0001-\\u001f\\u007f-\\u009f\\u202a-\\u202e\\u2066-\\u2069"<>:|?*]{1,200}$' or one ->> 'filename' ~ E'^\\.+$' then
            perform millrace.refuse('a filename is missing, too long, or has a path or control characters in it', 'attachments', 'Give for example "bill.pdf".');
        end if;
        if coalesce(one ->> 'content_type', '') !~ '^[A-Za-z0-9!#$&^_.+-]{1,80}/[A-Za-z0-9!#$&^_.+-]{1,80}$' then
            perform millrace.refuse('a content_type is missing or malformed', 'attachments', 'Give for example "application/pdf".');
        end if;
        perform millrace.mail_attachment_check(one ->> 'filename', one ->> 'content_type');
        if one ->> 'content_id' !~ '^[A-Za-z0-9._@+-]{1,128}$' then
            perform millrace.refuse('a content_id is malformed', 'attachments', 'Letters, digits and . _ @ + -.');
        end if;
        if (one ? 'data') = (one ? 'blob') then
            perform millrace.refuse('an attachment has neither data nor blob, or both', 'attachments', 'Give data in base64, or the hash of a blob.');
        end if;
        if one ? 'data' then
            total := total + length(one ->> 'data');
            last_file := one ->> 'filename';
            if total > most then
                exit;
            end if;
            begin
                bytes := decode(one ->> 'data', 'base64');
            exception when others then
                perform millrace.refuse('the data of an attachment is not base64', 'attachments');
            end;
            the_id := sha256(bytes);
            the_size := octet_length(bytes);
            if not exists (select from millrace.blob b where b.id = the_id and b.upload is not null for key share) then
                the_upload := millrace.blob_upload();
                for n in 0 .. (greatest(the_size, 1) - 1) / 262144 loop
                    perform millrace.blob_stage(the_upload, n, substr(bytes, n * 262144 + 1, 262144));
                end loop;
                perform millrace.blob_store(the_upload, the_id, the_size);
            end if;
        else
            if coalesce(one ->> 'blob', '') !~ '^[0-9a-f]{64}$' then
                perform millrace.refuse('blob is not a SHA-256 in 64 lower-case hexadecimal digits', 'attachments');
            end if;
            the_id := decode(one ->> 'blob', 'hex');
            -- A hash alone opens nothing: for another's blob the answer is the same as for one that does not exist.
            select b.size into the_size from millrace.blob b
             where b.id = the_id and millrace.blob_may_use(the_id, mail_attachments.caller, millrace.is_staff(mail_attachments.caller), the_tenant);
            if not found then
                perform millrace.refuse(format('there is no blob %s', one ->> 'blob'), 'attachments', 'Put its content first.', 'P0002', 'not_found');
            end if;
            total := total + (the_size + 2) / 3 * 4;
            last_file := one ->> 'filename';
            if total > most then
                exit;
            end if;
        end if;
        perform millrace.blob_keep(the_id, the_owner);
        if one ? 'data' then
            perform millrace.blob_allow(the_id, mail_attachments.caller, the_tenant);
        end if;
        kept := kept || jsonb_build_object('filename', one ->> 'filename', 'content_type', lower(one ->> 'content_type'), 'blob', encode(the_id, 'hex'),
            'size', the_size, 'content_id', one ->> 'content_id');
    end loop;
    if total > most then
        perform millrace.refuse(format('the attachments take more than the %s bytes allowed in base64: %s is too much', most, last_file), 'attachments',
            'Send a link to the file.', '53400', 'too_large');
    end if;
    return kept;
end $$;

create or replace function millrace.mail_time(args jsonb, field text) returns timestamptz
language plpgsql stable as $$
declare
    found timestamptz;
begin
    begin
        found := (args ->> field)::timestamptz;
    exception when others then
        perform millrace.refuse(format('%s is not a timestamp', field), field, 'Give for example "2030-01-31T12:00:00Z".');
    end;
    if found in ('infinity', '-infinity') then
        perform millrace.refuse(format('%s is infinite', field), field, 'Give a point in time.');
    end if;
    return found;
end $$;

-- The arguments of a kind as those of mail.send: what its function takes, and what its options add.
create or replace function millrace.mail_args(kind text, args jsonb) returns jsonb
language plpgsql stable as $$
declare
    options jsonb := coalesce(nullif(args -> 'options', 'null'), '{}');
    own text[];
    missing text;
    made jsonb;
begin
    if jsonb_typeof(args) <> 'object' then
        perform millrace.refuse('the arguments are not a JSON object', 'args');
    end if;
    if kind = 'mail.send' then
        return args;
    end if;
    own := case kind
        when 'mail.password_reset' then array['recipient', 'token', 'user_id']
        when 'mail.account_verification' then array['recipient', 'token']
        when 'mail.welcome' then array['recipient', 'user_name']
        when 'mail.account_notification' then array['recipient', 'title', 'body'] end;
    if own is null then
        perform millrace.refuse(format('%L is not a kind of mail', left(kind, 60)), 'kind');
    end if;
    select o into missing from unnest(own) o where jsonb_typeof(args -> o) is distinct from 'string' and not (o = 'user_id' and coalesce(args -> o, 'null') = 'null') limit 1;
    if missing is not null then
        perform millrace.refuse(format('%s is missing or not text', missing), missing);
    end if;
    select k into missing from jsonb_object_keys(args) k where k <> 'options' and k <> all (own) limit 1;
    if missing is not null then
        perform millrace.refuse(format('%s is unknown', left(missing, 60)), missing, 'Give further parameters of mail_send in options.');
    end if;
    if kind in ('mail.password_reset', 'mail.account_verification') and length(args ->> 'token') not between 1 and millrace.most('token') then
        perform millrace.refuse('the token is empty or too long', 'token', 'Give your own token; Millrace makes none.');
    end if;
    if jsonb_typeof(options) <> 'object' or options ?| array['recipients', 'template', 'subject', 'body_text', 'body_html'] then
        perform millrace.refuse('options is not a JSON object, or has a field that the kind decides', 'options', 'The kind decides recipients, template, subject and body.');
    end if;
    made := jsonb_build_object('recipients', jsonb_build_array(args -> 'recipient'), 'template', substr(kind, 6),
        'data', (args - 'options' - 'recipient') || coalesce(nullif(options -> 'data', 'null'), '{}'));
    if kind in ('mail.password_reset', 'mail.account_verification') then
        made := jsonb_build_object('priority', 'high', 'purpose', 'security') || made;
    end if;
    return made || (options - 'data');
end $$;

create or replace function millrace.mail_enqueue(the_kind text, the_id uuid, the_priority text, the_purpose text, due timestamptz, the_tenant text, caller name) returns bigint
language plpgsql volatile as $$
declare
    made bigint;
begin
    select e.id into made from millrace.enqueue_one(the_kind, jsonb_build_object('message', the_id), millrace.mail_queue(the_priority),
        case when the_purpose = 'alarm' and millrace.is_backend(mail_enqueue.caller) then 0 else millrace.mail_lane(the_priority) end, due, null, 'skip', null, the_tenant, null, '{}', '{}', '{}', caller => mail_enqueue.caller) e;
    return made;
end $$;

-- What the workers and the database's owner have told about the app: its name, and whether there are pages for the links.
create or replace function millrace.mail_defaults() returns jsonb
language sql stable as $$
    select coalesce((select s.value::jsonb from millrace.setting s where s.name = 'mail_worker_defaults'), '{}')
        || coalesce((select jsonb_build_object('app_name', s.value) from millrace.setting s where s.name = 'app_name'), '{}')
$$;

-- A worker tells at its start what it can add to a message's data. What it does not know removes nothing that another worker told.
create or replace function millrace.mail_defaults_tell(app_name text, has_reset_url boolean, has_verify_url boolean) returns void
language sql volatile security definer set search_path = pg_catalog, pg_temp as $$
    select millrace.setting_add('mail_worker_defaults', jsonb_strip_nulls(jsonb_build_object(
        'app_name', left(mail_defaults_tell.app_name, 100), 'reset_url', nullif(has_reset_url, false), 'verify_url', nullif(has_verify_url, false))))
$$;
select millrace.door_is('mail', 'mail_defaults_tell', 'worker', 'staff');

-- The app's name in templates, if neither the call nor the rendering worker has one. null: none any more.
create or replace function millrace.app_name_set(name text, caller millrace.caller_name default current_user) returns boolean
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
begin
    if length(app_name_set.name) not between 1 and 100 or app_name_set.name ~ E'[\\u0001-\\u001f\\u007f-\\u009f]' then
        perform millrace.refuse('the name is empty, too long, or has control characters', 'name', 'Give 1 to 100 characters.');
    end if;
    if not millrace.setting_put('app_name', app_name_set.name) then
        return false;
    end if;
    perform millrace.audited('app.name', app_name_set.name, null, caller => app_name_set.caller);
    return true;
end $$;
select millrace.door_is('mail', 'app_name_set', 'admin', 'staff', audited => true);

-- Reports a missing template, and missing data that the template requires, while the caller can still correct it; the renderer checks
-- everything later. Only what each version in use requires is demanded here, because the version is chosen at rendering. While no worker
-- has told what it adds to the data, the worker decides whether app_name and url are missing.
create or replace function millrace.mail_check_data(the_kind text, the_template text, data jsonb, expires boolean) returns void
language plpgsql stable set plan_cache_mode = force_generic_plan as $$
declare
    known jsonb := millrace.mail_defaults();
    is_told boolean := exists (select from millrace.setting s where s.name = 'mail_worker_defaults');
    missing text;
begin
    select string_agg(r.name, ', ' order by r.name) into missing from unnest(millrace.template_requires(the_template)) r(name)
     where coalesce(btrim(data ->> r.name), '') = ''
       and not case r.name
               when 'app_name' then not is_told or known ? 'app_name'
               when 'expires' then expires
               when 'url' then the_kind in ('mail.password_reset', 'mail.account_verification')
                   and (not is_told or known ? case the_kind when 'mail.password_reset' then 'reset_url' else 'verify_url' end)
               else false end;
    if missing is not null then
        perform millrace.refuse(format('the template %s requires %s', the_template, missing), 'data', 'Give a text for each in data.'
            || case when missing ~ '(^|, )app_name(,|$)' then ' app_name may come from MILLRACE_APP_NAME or EMAIL_FROM_NAME of the workers, or from millrace.app_name_set.' else '' end
            || case when missing ~ '(^|, )url(,|$)' then ' url may come from MILLRACE_MAIL_RESET_URL and MILLRACE_MAIL_VERIFY_URL of the workers.' else '' end);
    end if;
end $$;

-- Writes a message down. the_job: it came first; else one is enqueued. The id, given or new or made from the job's.
create or replace function millrace.mail_put(the_kind text, given jsonb, the_id uuid, the_job bigint, caller name) returns uuid
language plpgsql volatile set plan_cache_mode = force_generic_plan as $$
declare
    args jsonb := millrace.mail_args(the_kind, given);
    the_digest bytea;
    t timestamptz := millrace.now();
    name text;
    recipients text[]; cc text[]; bcc text[]; everybody text[];
    the_priority text; the_purpose text;
    scheduled timestamptz; expires timestamptz;
    the_tenant text := args ->> 'tenant';
    the_sender text := args ->> 'sender';
    claimed text;
    old record;
    the_owner text := mail_put.caller;
    job_tenant text := (select j.tenant from millrace.job j where j.id = the_job);   -- where the job came first
    attached jsonb;
    is_new boolean;
    reader text;                                          -- the person whose profile the message goes by
    the_data jsonb;
begin
    args := jsonb_strip_nulls(args - 'data') || jsonb_build_object('data', coalesce(nullif(args -> 'data', 'null'), '{}'));
    select k into name from jsonb_object_keys(args) k
     where k <> all (array['recipients', 'subject', 'body_text', 'body_html', 'template', 'data', 'locale', 'cc', 'bcc', 'reply_to', 'headers', 'attachments', 'priority', 'receipt',
        'scheduled_at', 'expires_at', 'tags', 'purpose', 'on_unknown', 'sender', 'tenant', 'token_from', 'id', 'person']) limit 1;
    if name is not null then
        perform millrace.refuse(format('%s is unknown', left(name, 60)), name, 'See mail_send for the options.');
    end if;
    if args ? 'id' then
        begin
            the_id := coalesce(the_id, (args ->> 'id')::uuid);
        exception when others then
            perform millrace.refuse('the id is not a UUID', 'id');
        end;
    end if;
    recipients := millrace.mail_texts(args, 'recipients', millrace.most('recipients')::int);
    cc := millrace.mail_texts(args, 'cc', millrace.most('recipients')::int);
    bcc := millrace.mail_texts(args, 'bcc', millrace.most('recipients')::int);
    if recipients = '{}' then
        perform millrace.refuse('there is no recipient', 'recipients', 'Give at least one address.');
    end if;
    everybody := array(select distinct millrace.mail_bare(e) from unnest(recipients || cc || bcc) e);
    if cardinality(recipients || cc || bcc) > millrace.most('recipients') then
        perform millrace.refuse('recipients, cc and bcc have more than 50 addresses together', 'recipients', null, '53400', 'too_large');
    end if;
    if args ? 'reply_to' then
        perform millrace.mail_check_mailbox(args ->> 'reply_to', 'reply_to');
    end if;
    if (args ? 'template') = (args ?| array['body_text', 'body_html']) then
        perform millrace.refuse('a message has either a template or a body', 'template', 'Give template and data, or body_text, body_html or both.');
    end if;
    if not args ? 'template' and coalesce(btrim(args ->> 'subject'), '') = '' then
        perform millrace.refuse('the subject is missing', 'subject');
    end if;
    if args ->> 'template' !~ '^[A-Za-z0-9][A-Za-z0-9_.-]{0,127}$' then
        perform millrace.refuse('the name of the template is malformed', 'template');
    end if;
    if args ->> 'locale' !~ '^[A-Za-z0-9-]{1,35}$' then
        perform millrace.refuse('the locale is malformed', 'locale', 'Give for example pt-BR.');
    end if;
    if args ->> 'subject' ~ E'[\\u0001-\\u001f\\u007f-\\u009f\\u2028\\u2029]' or length(args ->> 'subject') > millrace.most('subject') then
        perform millrace.refuse('the subject is too long, or has line breaks or control characters', 'subject');
    end if;
    foreach name in array array['subject', 'body_text', 'body_html', 'template', 'locale', 'reply_to', 'sender', 'tenant', 'token_from', 'person'] loop
        if args ? name and jsonb_typeof(args -> name) <> 'string' then
            perform millrace.refuse(format('%s is not text', name), name);
        end if;
    end loop;
    if octet_length(args ->> 'body_text') > millrace.most('body') or octet_length(args ->> 'body_html') > millrace.most('body')
        or octet_length((args -> 'data')::text) > millrace.most('mail_data') then
        perform millrace.refuse(format('a body takes more than %s bytes, or data more than %s', millrace.most('body'), millrace.most('mail_data')), case when args ? 'template' then 'data' else 'body_html' end,
            'Mail programs cut off long before that.', '53400', 'too_large');
    end if;
    if jsonb_typeof(args -> 'data') <> 'object' then
        perform millrace.refuse('data is not a JSON object', 'data');
    end if;
    if args ? 'person' and cardinality(recipients) > 1 then
        perform millrace.refuse('a message to a person goes to one recipient', 'person', 'Send one message for each person, or leave it out.');
    end if;
    reader := millrace.mail_reader(args ->> 'person', case the_kind when 'mail.password_reset' then given ->> 'user_id' end, caller => mail_put.caller);
    if args ? 'template' then
        -- A template calls its reader by the profile's name, where the data give none.
        the_data := coalesce((select jsonb_build_object('user_name', p.display_name) from millrace.profile p
                               where args ? 'person' and p.person = reader and p.display_name is not null), '{}') || (args -> 'data');
        perform millrace.mail_check_data(the_kind, args ->> 'template', the_data, args ? 'expires_at');
    end if;
    perform millrace.mail_check_headers(coalesce(args -> 'headers', '{}'));
    perform millrace.mail_check_tags(coalesce(args -> 'tags', '{}'));
    the_priority := coalesce(args ->> 'priority', 'normal');
    the_purpose := coalesce(args ->> 'purpose', 'transactional');
    if the_priority <> all (array['low', 'normal', 'high', 'urgent']) then
        perform millrace.refuse(format('the priority %L is unknown', left(the_priority, 60)), 'priority', 'Give low, normal, high or urgent.');
    end if;
    if the_purpose <> all (array['transactional', 'security', 'alarm', 'marketing']) then
        perform millrace.refuse(format('the purpose %L is unknown', left(the_purpose, 60)), 'purpose', 'Give transactional, security, alarm or marketing.');
    end if;
    if the_purpose = 'marketing' and cardinality(recipients || cc || bcc) > 1 then
        perform millrace.refuse('a marketing message goes to one recipient', 'recipients', 'Its link to unsubscribe is for one person.');
    end if;
    if coalesce(args ->> 'on_unknown', 'park') <> all (array['park', 'again']) then
        perform millrace.refuse('on_unknown is unknown', 'on_unknown', 'Give park, or again where a duplicate is acceptable.');
    end if;
    if coalesce(args ->> 'token_from', 'app') <> all (array['app', 'supabase']) then
        perform millrace.refuse('token_from is unknown', 'token_from', 'Give app or supabase.');
    end if;
    if args ? 'receipt' and jsonb_typeof(args -> 'receipt') <> 'boolean' then
        perform millrace.refuse('receipt is not a boolean', 'receipt');
    end if;
    if length(the_sender) not between 1 and millrace.most('name') or the_sender ~ E'[\\u0001-\\u001f\\u007f-\\u009f]' then
        perform millrace.refuse('the sender is empty, too long, or has control characters', 'sender', 'It says on whose behalf the message goes.');
    end if;
    scheduled := millrace.mail_time(args, 'scheduled_at');
    expires := millrace.mail_time(args, 'expires_at');
    if expires <= greatest(t, scheduled) then
        perform millrace.refuse('expires_at is before the message would be sent', 'expires_at');
    end if;

    if millrace.claims(mail_put.caller) is not null and not millrace.is_staff(mail_put.caller) then
        claimed := millrace.claims(mail_put.caller) ->> 'sub';
        if coalesce(the_sender, claimed) is distinct from claimed then
            perform millrace.refuse('the sender is not the caller', 'sender', 'Leave it out: it is taken from the claims.', '42501', 'permission');
        end if;
        the_sender := claimed;
        the_tenant := millrace.tenant_of(the_tenant, mail_put.caller);
    end if;

    the_digest := sha256(convert_to(the_kind || chr(31) || (args - 'id')::text || chr(31) || coalesce(millrace.tenant_digested(the_tenant), ''), 'UTF8'));
    -- A message's id is ours alone: its job may come first, and the message is still written once.
    is_new := the_id is null;
    the_id := coalesce(the_id, gen_random_uuid());
    if is_new and the_job is null then
        the_job := millrace.mail_enqueue(the_kind, the_id, the_priority, the_purpose, case when scheduled > t then scheduled end, the_tenant, caller => mail_put.caller);
    end if;
    insert into millrace.mail (id, kind, status, job, direct, template, locale, priority, purpose, on_unknown, fallback, receipt, tenant, owner, sender, domains, created_at,
        scheduled_at, expires_at, changed_at, digest, person)
    values (the_id, the_kind, case when scheduled > t then 'scheduled' else 'queued' end, the_job, the_job is not null and not is_new, args ->> 'template',
        coalesce(args ->> 'locale', case when args ? 'template' then millrace.locale_of(reader) end),
        the_priority, the_purpose, coalesce(args ->> 'on_unknown', 'park'), coalesce(args ->> 'token_from', 'app') <> 'supabase',
        coalesce((args ->> 'receipt')::boolean, false),
        the_tenant, the_owner, the_sender, array(select distinct split_part(e, '@', 2) from unnest(everybody) e), t, scheduled, expires, t, the_digest, coalesce(reader, left(given ->> 'user_id', 128)))
        on conflict do nothing;
    if not found then
        select m.owner, m.digest, m.tenant into old from millrace.mail m where m.id = the_id;
        if not found then                                 -- committed since our snapshot, at a stricter level
            raise exception using errcode = '40001', message = 'a message with this id was handed in by a concurrent transaction';
        end if;
        if old.digest <> the_digest or not millrace.may_see(old.owner, old.tenant, caller => mail_put.caller) then
            perform millrace.refuse(format('message %s already exists with different content', the_id), 'id',
                'Repeating an id with the same content returns the first answer; use a new id for another message.', '23505', 'conflict');
        end if;
        return the_id;
    end if;
    attached := millrace.mail_attachments(coalesce(args -> 'attachments', '[]'), 'mail:' || the_id,
        coalesce(millrace.caller_tenant(mail_put.caller), job_tenant), mail_put.caller);
    insert into millrace.mail_content (message, recipients, cc, bcc, reply_to, subject, body_text, body_html, data, headers, attachments, tags, addresses)
    values (the_id, recipients, cc, bcc, args ->> 'reply_to', args ->> 'subject', args ->> 'body_text', args ->> 'body_html',
        the_data, coalesce(args -> 'headers', '{}'), attached, millrace.mail_tags(args -> 'tags'), everybody);
    if the_job is null then
        the_job := millrace.mail_enqueue(the_kind, the_id, the_priority, the_purpose, case when scheduled > t then scheduled end, the_tenant, caller => mail_put.caller);
        update millrace.mail m set job = the_job where m.id = the_id;
    end if;
    insert into millrace.mail_change (at, message, change, data)
    values (t, the_id, 'created', jsonb_build_object('status', case when scheduled > t then 'scheduled' else 'queued' end));
    return the_id;
end $$;

-- Urgent mail has a queue of its own, so that a campaign never takes all slots of a worker.
create or replace function millrace.mail_queue(priority text) returns text
language sql immutable parallel safe as $$ select case when priority in ('high', 'urgent') then 'mail.urgent' else 'mail' end $$;

-- 0 is kept for alarms.
create or replace function millrace.mail_lane(priority text) returns int
language sql immutable parallel safe as $$ select case priority when 'urgent' then 1 when 'high' then 2 when 'low' then 7 else 4 end $$;

create or replace function millrace.mail_send(
    recipients text[], subject text default null, body_text text default null, body_html text default null, template text default null, data jsonb default '{}',
    locale text default null, cc text[] default '{}', bcc text[] default '{}', reply_to text default null, headers jsonb default '{}', attachments jsonb default '[]',
    priority text default 'normal', receipt boolean default false, scheduled_at timestamptz default null, expires_at timestamptz default null, tags jsonb default '{}',
    purpose text default 'transactional', on_unknown text default 'park', sender text default null, tenant text default null, id uuid default null,
    person text default null, caller millrace.caller_name default current_user
) returns uuid
language sql volatile security definer set search_path = pg_catalog, pg_temp as $$
    select millrace.mail_put('mail.send', jsonb_build_object('recipients', to_jsonb(recipients[1:51]), 'subject', subject, 'body_text', body_text, 'body_html', body_html,
        'template', template, 'data', data, 'locale', locale, 'cc', to_jsonb(cc[1:51]), 'bcc', to_jsonb(bcc[1:51]), 'reply_to', reply_to, 'headers', headers,
        'attachments', attachments, 'priority', priority, 'receipt', receipt, 'scheduled_at', scheduled_at, 'expires_at', expires_at, 'tags', tags,
        'purpose', purpose, 'on_unknown', on_unknown, 'sender', sender, 'tenant', tenant, 'person', person), id, null, caller => mail_send.caller)
$$;
select millrace.door_is('mail', 'mail_send', 'client, worker', 'granted', 'Sends a mail.',
    words => '{"priority": ["low", "normal", "high", "urgent"], "purpose": ["transactional", "security", "alarm", "marketing"], "on_unknown": ["park", "again"]}');

create or replace function millrace.mail_password_reset(recipient text, token text, user_id text, options jsonb default '{}', caller millrace.caller_name default current_user) returns uuid
language sql volatile security definer set search_path = pg_catalog, pg_temp as $$
    select millrace.mail_put('mail.password_reset', jsonb_build_object('recipient', recipient, 'token', token, 'user_id', user_id, 'options', options), null, null, caller => mail_password_reset.caller)
$$;
select millrace.door_is('mail', 'mail_password_reset', 'client, worker', 'granted',
    'Sends the mail that resets a password.');

create or replace function millrace.mail_account_verification(recipient text, token text, options jsonb default '{}', caller millrace.caller_name default current_user) returns uuid
language sql volatile security definer set search_path = pg_catalog, pg_temp as $$
    select millrace.mail_put('mail.account_verification', jsonb_build_object('recipient', recipient, 'token', token, 'options', options), null, null, caller => mail_account_verification.caller)
$$;
select millrace.door_is('mail', 'mail_account_verification', 'client, worker', 'granted',
    'Sends the mail that verifies an address.');

create or replace function millrace.mail_welcome(recipient text, user_name text, options jsonb default '{}', caller millrace.caller_name default current_user) returns uuid
language sql volatile security definer set search_path = pg_catalog, pg_temp as $$
    select millrace.mail_put('mail.welcome', jsonb_build_object('recipient', recipient, 'user_name', user_name, 'options', options), null, null, caller => mail_welcome.caller)
$$;
select millrace.door_is('mail', 'mail_welcome', 'client, worker', 'granted', 'Sends the mail that welcomes somebody.');

create or replace function millrace.mail_account_notification(recipient text, title text, body text, options jsonb default '{}', caller millrace.caller_name default current_user) returns uuid
language sql volatile security definer set search_path = pg_catalog, pg_temp as $$
    select millrace.mail_put('mail.account_notification', jsonb_build_object('recipient', recipient, 'title', title, 'body', body, 'options', options), null, null, caller => mail_account_notification.caller)
$$;
select millrace.door_is('mail', 'mail_account_notification', 'client, worker', 'granted',
    'Sends a notice about an account by mail.');

create or replace function millrace.mail_must_see(the_id uuid, caller name) returns millrace.mail
language plpgsql volatile as $$
declare
    found_one millrace.mail;
begin
    -- The locking statement checks the right, too, so a caller that may not see the message blocks nobody.
    select * into found_one from millrace.mail m
     where m.id = the_id and millrace.may_see(m.owner, m.tenant, caller => mail_must_see.caller) for update;
    if not found then
        perform millrace.refuse(format('there is no message %s', the_id), 'id', null, 'P0002', 'not_found');
    end if;
    return found_one;
end $$;

-- False: it was cancelled before.
create or replace function millrace.mail_cancel(id uuid, caller millrace.caller_name default current_user) returns boolean
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
    one millrace.mail := millrace.mail_must_see(mail_cancel.id, caller => mail_cancel.caller);
begin
    if one.status = 'cancelled' then
        return false;
    end if;
    if one.batch is not null or millrace.mail_rank(one.status) > millrace.mail_rank('sending') then
        perform millrace.refuse(format('message %s is %s', one.id, one.status), 'id', 'Only a message that no provider has taken can be cancelled.', '55000', 'conflict');
    end if;
    perform millrace.mail_raise(one.id, 'cancelled', 'cancelled', null);
    if one.job is not null then
        perform millrace.cancel_now(one.job);
    end if;
    perform millrace.mail_audited('cancel', one.id, '{}', caller => mail_cancel.caller);
    perform millrace.audited('mail.cancel', one.id::text, null, caller => mail_cancel.caller);
    return true;
end $$;
select millrace.door_is('mail', 'mail_cancel', 'client, worker, operator', 'tenant mail',
    'Cancels a mail that has not been sent.', audited => true);

create or replace function millrace.mail_reschedule(id uuid, at timestamptz, caller millrace.caller_name default current_user) returns boolean
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
    one millrace.mail := millrace.mail_must_see(mail_reschedule.id, caller => mail_reschedule.caller);
begin
    if at is null or at in ('infinity', '-infinity') then
        perform millrace.refuse('at is null or infinite', 'at', 'Give a point in time.');
    end if;
    if one.status not in ('scheduled', 'queued') then
        perform millrace.refuse(format('message %s is %s', one.id, one.status), 'id', 'Only a waiting message can be moved.', '55000', 'conflict');
    end if;
    if one.expires_at <= at then
        perform millrace.refuse('the message expires before that', 'at');
    end if;
    -- A run that has begun sees the new time and waits for it.
    update millrace.mail m set scheduled_at = at, status = case when at > millrace.now() then 'scheduled' else 'queued' end, changed_at = millrace.now() where m.id = one.id;
    begin
        perform millrace.reschedule_now(one.job, at);
    exception when sqlstate '55000' or sqlstate 'P0002' then
        null;
    end;
    perform millrace.mail_changed(one.id, 'rescheduled');
    perform millrace.mail_audited('reschedule', one.id, '{}', caller => mail_reschedule.caller);
    perform millrace.audited('mail.reschedule', one.id::text, jsonb_build_object('at', at), caller => mail_reschedule.caller);
    return true;
end $$;
select millrace.door_is('mail', 'mail_reschedule', 'client, worker', 'tenant mail',
    'Sends a waiting mail at another time.', audited => true);
