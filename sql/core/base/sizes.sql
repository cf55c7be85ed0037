-- The bounds of everything that callers give: one table, from which the checks, the guide of limits and the tests are made. A check calls
-- most('args'). Stored values are measured uncompressed, because a caller can send 60 megabytes that take 700 bytes on the way.
create or replace function millrace.input_bounds() returns table (input text, most bigint, unit text)
language sql immutable parallel safe
begin atomic
    select v.input, v.most, v.unit
      from (values
        ('name', 128::bigint, 'characters'),              -- of a kind, a queue, a person, a family, a tenant, a contact
        ('unique_key', 512, 'characters'),
        ('limit_key', 512, 'characters'),
        ('args', 1048576, 'bytes'),
        ('metadata', 65536, 'bytes'),
        ('options', 65536, 'bytes'),
        ('tags', 32, 'entries'),
        ('tag', 256, 'characters'),
        ('jobs', 100000, 'entries'),                      -- of one enqueue_many
        ('jobs_bytes', 67108864, 'bytes'),
        ('event_data', 65536, 'bytes'),
        ('event_subject', 1024, 'characters'),
        ('source', 512, 'characters'),
        ('recipients', 50, 'entries'),                    -- with copies
        ('mailbox', 576, 'characters'),
        ('subject', 900, 'characters'),
        ('body', 2097152, 'bytes'),                       -- of each of the two
        ('mail_data', 262144, 'bytes'),
        ('headers', 16384, 'bytes'),
        ('attachments', 50, 'entries'),
        ('attachments_bytes', 40000000, 'bytes'),         -- in base64
        ('token', 2048, 'characters'),
        ('title', 500, 'characters'),
        ('storage_url', 4096, 'characters'),
        ('password', 512, 'characters'),
        ('ids', 10, 'entries'),                           -- of one document_delete
        ('query', 1000, 'characters'),
        ('page', 500, 'entries'),                         -- of every list
        ('batch', 500, 'entries'),                        -- of mood_log_many and quest_complete_many
        ('emoji', 16, 'characters'),
        ('hobby', 80, 'characters'),
        ('fact', 1000, 'characters'),
        ('answer', 200, 'characters'),
        ('note', 500, 'characters'),
        ('display_name', 100, 'characters'),
        ('avatar', 500, 'characters'),
        ('place', 500, 'bytes'),
        ('own_notice_key', 200, 'characters'),
        ('own_notice_data', 4096, 'bytes'),
        ('warnings', 5, 'entries'),
        ('device_token', 4096, 'characters'),
        ('channels', 16384, 'bytes'),
        ('sync_ops', 500, 'entries'),                     -- of one sync_push
        ('sync_bytes', 4194304, 'bytes'),
        ('idempotency_key', 128, 'characters'),
        ('signal', 65536, 'bytes'),                       -- what a signal or a question carries
        ('message', 8000, 'characters'),                  -- of a chat
        ('message_attachments', 10, 'entries'),
        ('thread_members', 50, 'entries'),                -- named one by one
        ('lesson_data', 16384, 'bytes'),
        ('thumbnail', 4096, 'pixels'),                    -- of each side
        ('ai_input', 262144, 'bytes'),
        ('ai_answer', 65536, 'bytes'),                    -- what a model gave
        ('gateway_answer', 1048576, 'bytes')              -- a larger one is given, and not kept
      ) v(input, most, unit);
end;

create or replace function millrace.most(what text) returns bigint
language sql immutable parallel safe
return (select b.most from millrace.input_bounds() b where b.input = what);

-- The bounds of what is counted, and whose count it is: nobody but whom the last column names can fill one. One table, from which the checks, the
-- guide of limits and a test are made; a check calls counted('contacts'). most is null where it is set: for a tenant, a purpose, or by the workers.
create or replace function millrace.counted_bounds() returns table (bound text, most bigint, counted text, whose text)
language sql immutable parallel safe
begin atomic
    select v.bound, v.most, v.counted, v.whose
      from (values
        ('signals', 10000::bigint, 'kept, of a name and key', 'role and tenant'),
        ('new_devices', 20, 'a day', 'person'),
        ('new_addresses', 5, 'a day', 'person'),
        ('givers', 3, 'people a day', 'address'),            -- who say that it is theirs
        ('own_notices', 50, 'a day', 'person'),
        ('own_notices_waiting', 100, 'at a time', 'person'),
        ('drills', 10, 'a day', 'person'),
        ('warnings', 100, 'a day', 'person'),
        ('contacts', 50, 'at a time', 'person'),
        ('questions', 10, 'a day', 'person'),                -- to contacts; unless check_in_rules_set says otherwise
        ('askers', 3, 'people a day', 'address'),            -- unless check_in_rules_set says otherwise
        ('questions_again', 5, 'in all', 'person and address'),
        ('invitations', 50, 'open', 'family'),
        ('offline_devices', 20, 'at a time', 'person'),
        ('messages', 5000, 'a day', 'person'),               -- unless chat_rules_set says otherwise
        ('threads', 50, 'a day', 'person'),
        ('files', 500, 'a day', 'person'),                   -- of messages
        ('documents', null, 'a period', 'tenant'),
        ('pages', null, 'a period', 'tenant'),
        ('bytes', null, 'a period', 'tenant'),
        ('lessons', null, 'a period', 'tenant'),
        ('computing_time', null, 'a period', 'tenant'),
        ('messages_of_all', null, 'a period', 'tenant'),
        ('ai_tokens', null, 'a period', 'tenant'),
        ('ai_tokens_of_a_family', null, 'a period', 'family'),
        ('ai_tokens_of_a_person', null, 'a day, of a purpose', 'person'),
        ('mails', null, 'a span', 'role, tenant and sender'),
        ('mails_to_a_domain', null, 'a span, half of what goes there', 'role and tenant'),
        ('steps', 1000, 'on record', 'job'),
        ('published', 10000, 'values', 'job'),
        ('secrets', 5, 'at a time', 'webhook'),
        ('failures', 200, 'groups', 'kind')
      ) v(bound, most, counted, whose);
end;

create or replace function millrace.counted(what text) returns int
language sql immutable parallel safe
return (select b.most::int from millrace.counted_bounds() b where b.bound = what);

-- The bytes of a value as it will be read. A value that arrives compressed is unpacked and measured. Stable, like the functions that it
-- calls: otherwise it would not be inlined into the calling expression, and would cost an enqueue a fifth more.
create or replace function millrace.true_bytes(value jsonb) returns bigint
language sql stable parallel safe
return case when pg_catalog.pg_column_compression(value) is null then pg_catalog.pg_column_size(value) else pg_catalog.octet_length(value::pg_catalog.text) end;

-- How many bytes clients' lists answer with. cut: a page ends before it would take more, with one row at least, and the rest is on the next;
-- what is not cut cannot take more, because its rows are few and small.
create or replace function millrace.answer_bounds() returns table (door text, most bigint, is_cut boolean)
language sql immutable parallel safe
begin atomic
    select v.door, v.most, v.is_cut
      from (values
        ('ai_own', 1048576::bigint, true),
        ('cards', 1048576, true),
        ('chat_messages', 1048576, true),
        ('chat_search', 1048576, true),
        ('chat_threads', 1048576, true),
        ('document_analysis', 1048576, true),
        ('document_list', 1048576, true),
        ('document_search', 1048576, true),
        ('document_text', 1048576, true),                  -- of several pages: more is refused, for it is one text
        ('hobbies', 1048576, true),
        ('lesson_list', 1048576, true),
        ('own_jobs', 1048576, true),
        ('person_export', 1048576, true),
        ('published', 1048576, true),
        ('quest_history', 1048576, true),
        ('ai_answer', 262144, false),                      -- one row each, from here on
        ('chat_upload', 16384, false),
        ('document', 16384, false),
        ('document_upload', 16384, false),
        ('feed_position', 16384, false),
        ('job', 8388608, false),
        ('mail_message', 65536, false),
        ('media', 65536, false),
        ('state_value', 2097152, false),
        ('lesson', 524288, false),                         -- of twenty tenants
        ('chat_status', 262144, false),                    -- the members of a thread
        ('document_delete', 16384, false),                 -- for each that was named
        ('lesson_delete', 16384, false),
        ('enqueue_many', 8388608, false),
        ('sync_push', 4194304, false),
        ('sync_push_text', 4194304, false),
        ('sync_devices', 65536, false),                    -- twenty
        ('hobby_presets', 65536, false),
        ('error_map', 16384, false),
        ('notice_sent', 65536, false),
        ('flow_tree', 2097152, false),                     -- two thousand jobs, without their arguments
        ('moods', 1048576, false),                         -- 500 of them, and so on
        ('family_invitations', 1048576, false),
        ('document_feed', 4194304, false),                 -- changes have ids, states and times
        ('feed_mine', 4194304, false),
        ('sync_pull', 4194304, false)
      ) v(door, most, is_cut);
end;

-- Whether a page that has taken some bytes takes a row of this size, too.
create or replace function millrace.page_takes(the_door text, taken bigint, size bigint) returns boolean
language sql immutable parallel safe
return taken = 0 or taken + size <= (select b.most from millrace.answer_bounds() b where b.door = the_door);
