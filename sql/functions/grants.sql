-- Everything is closed, then each role gets its doors. Applied again by every migrate, so that a role made later gets them too.
do $$
declare
    one record;
    client text := millrace.role_name('client');
    worker text := millrace.role_name('worker');
    admin text := millrace.role_name('admin');
    doors_client text[] := array['enqueue', 'enqueue_many', 'enqueue_copied', 'enqueue_numbered', 'cancel', 'flow_cancel', 'flow_tree', 'job', 'own_jobs', 'now', 'event_publish', 'flag_on'];
    doors_worker text[] := array['enqueue', 'enqueue_many', 'enqueue_copied', 'enqueue_numbered', 'enqueue_bulk', 'cancel', 'retry', 'reschedule', 'job', 'now',
        'register_kinds', 'register_queues', 'horizon', 'claim', 'claim_limited', 'lanes', 'lanes_above', 'promote', 'finish', 'complete', 'recorded', 'session_open', 'beat', 'watch', 'rescue',
        'session_close', 'leases_held', 'leases_return', 'cancels', 'heed_cancels', 'maintain', 'queue_list', 'retentions', 'schema_state', 'depths', 'rates', 'orphans', 'outstanding', 'blocked_count',
        'gates_open', 'slots_sweep', 'limit_list', 'parked_count',
        'step', 'steps', 'report', 'logs', 'retry_fresh',
        'schedule_set', 'schedule_wait', 'schedules_due', 'schedule_advance', 'schedule_problem',
        'flows_advance', 'flows_check', 'flow_cancel', 'flow_retry', 'flow_ids', 'flow_tree', 'spawn', 'results_before', 'event_publish', 'events_changes', 'event', 'event_list',
        'provider_flush', 'provider_tidy', 'provider_workers', 'latency_quantile', 'flag_on', 'flag_list',
        'blob', 'blob_list', 'blob_touch', 'blob_upload', 'blob_stage', 'blob_store', 'blob_drop', 'blob_open', 'blob_piece', 'blob_keep', 'blob_release',
        'blobs_forsaken', 'blob_forget', 'blob_uploads_expire'];
    doors_admin text[] := doors_worker || array['job_delete', 'job_list', 'pause', 'resume', 'retention_set', 'pins', 'sizes', 'dead_count', 'partitions', 'queue_load', 'job_ids', 'job_count', 'jobs_do',
        'dead_ids', 'dead_summary', 'sealed_keys', 'sealed_page', 'reseal',
        'grant_enqueue', 'revoke_enqueue', 'own_jobs', 'errors_of', 'progress_of', 'result_of', 'test_clock_advance', 'limit_set', 'slots_audit',
        'schedule_remove', 'schedule_pause', 'schedule_resume', 'schedule_run', 'schedule_fires', 'grant_publish', 'revoke_publish',
        'provider_force', 'flag_set'];
begin
    execute 'revoke all on schema millrace from public';
    execute 'revoke all on all tables in schema millrace from public';
    for one in select p.oid::regprocedure as signature from pg_proc p where p.pronamespace = 'millrace'::regnamespace loop
        execute format('revoke all on function %s from public', one.signature);
    end loop;
    for one in
        select p.oid::regprocedure as signature, p.proname, r.role
          from pg_proc p
          join lateral (values (client, doors_client), (worker, doors_worker), (admin, doors_admin)) r(role, doors) on p.proname = any (r.doors)
         where p.pronamespace = 'millrace'::regnamespace and to_regrole(quote_ident(r.role)) is not null
    loop
        execute format('grant execute on function %s to %I', one.signature, one.role);
    end loop;
    foreach client in array array[client, worker, admin] loop
        if to_regrole(quote_ident(client)) is not null then
            execute format('grant usage on schema millrace to %I', client);
        end if;
    end loop;
    if to_regrole(quote_ident(worker)) is not null then
        execute format('grant select on millrace.workers, millrace.queues, millrace.limits, millrace.schedules, millrace.events, millrace.providers, millrace.provider_events to %I', worker);
    end if;
    if to_regrole(quote_ident(admin)) is not null then
        execute format('grant select on millrace.jobs, millrace.queues, millrace.workers, millrace.limits, millrace.schedules, millrace.events, millrace.providers, millrace.provider_events to %I', admin);
    end if;
end $$;
