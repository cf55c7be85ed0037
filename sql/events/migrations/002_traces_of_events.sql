-- The place in a trace that an event belongs to: {"traceparent": …, "tracestate": …}, the attributes of CloudEvents' extension for distributed
-- tracing. null: none.
alter table millrace.event add column trace jsonb;
