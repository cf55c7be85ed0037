-- Traces: a job carries the place at which it was enqueued, in the fields traceparent and tracestate of its metadata, as W3C Trace Context
-- writes them. Nothing is ever refused for the sake of a trace: what is malformed is left out.

create or replace function millrace.trace_read(traceparent text, tracestate text) returns jsonb
language sql immutable parallel safe as $$
    select case when length(traceparent) <= 256
                     and traceparent ~ '^(?!ff)[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}(-[!-~]*)?$'
                then jsonb_build_object('traceparent', traceparent)
                     || case when length(tracestate) between 1 and 512 and tracestate ~ '^[ -~]*$' then jsonb_build_object('tracestate', tracestate) else '{}' end end
$$;

-- The place that the caller has named for this transaction, in the settings millrace.traceparent and millrace.tracestate; in the form in
-- which metadata carries it. null: none.
create or replace function millrace.trace_now() returns jsonb
language sql stable as $$
    select millrace.trace_read(current_setting('millrace.traceparent', true), current_setting('millrace.tracestate', true))
$$;

-- The place that metadata carries; null: none.
create or replace function millrace.trace_of(metadata jsonb) returns jsonb
language sql immutable parallel safe as $$
    select millrace.trace_read(metadata ->> 'traceparent', metadata ->> 'tracestate')
$$;

-- The metadata of a job that is enqueued now. What it names itself stays.
create or replace function millrace.trace_carried(metadata jsonb) returns jsonb
language sql stable as $$
    select case when coalesce(metadata ? 'traceparent', false) then metadata
                else coalesce(millrace.trace_now() || coalesce(metadata, '{}'), metadata) end
$$;
