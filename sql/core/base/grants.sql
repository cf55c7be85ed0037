-- Everything is closed, then each role gets its doors. Applied again by every migrate, so that a role made later gets them too.
do $$
declare
    one record;
    client text := millrace.role_name('client');
    worker text := millrace.role_name('worker');
    admin text := millrace.role_name('admin');
    viewer text := millrace.role_name('viewer');
    operator text := millrace.role_name('operator');
    gateway text := millrace.role_name('gateway');
    -- The gateway's login also is a member of the clients' role, which it takes on for each call. It serves signed links to files itself.
    doors_gateway text[] := array['right_claims', 'now', 'rooms_installed', 'schema_state', 'error_map', 'sync_device_claims', 'gateway_take', 'gateway_doors', 'gateway_beat', 'gateway_leave', 'feed_new', 'feed_next', 'jobs_followed', 'provider_flush', 'provider_tidy', 'flag_list', 'blob', 'blob_upload', 'blob_stage', 'blob_store', 'blob_put', 'blob_drop', 'blob_open', 'blob_link_holds', 'chat_link_holds', 'blob_piece', 'blob_touch', 'blob_keep', 'blob_release', 'blob_allow', 'upload_arrived', 'upload_reserve', 'upload_renew', 'upload_release'];
    -- People at the console. A viewer reads what is redacted and masked; an operator also acts, and reads what stands in documents.
    doors_viewer text[] := array['rooms_installed', 'kinds_waiting', 'ai_list', 'ai_state', 'ai_troubles', 'ai_purposes', 'ai_switches', 'subscription_state', 'subscriptions_shown', 'subscription_shown', 'now', 'right_view', 'schema_state', 'depths', 'queue_overview', 'queue_list', 'queue_load', 'rates', 'orphans', 'troubles', 'run_troubles', 'hook_troubles', 'retrying', 'rooms', 'room_lanes', 'measures', 'measures_fleet', 'outstanding',
        'blocked_count', 'parked_count', 'dead_count', 'limit_list', 'pins', 'sizes', 'partitions', 'sealed_keys', 'retentions', 'names_known', 'why', 'why_queue',
        'jobs_find', 'runs', 'forks_of', 'published_shown', 'state_value_shown', 'job_ids', 'job_count', 'job_errors', 'flow_tree', 'job_shown', 'jobs_shown', 'logs_shown', 'steps_shown', 'redactions', 'kind_list', 'jobs_by_field',
        'failure_groups', 'failure_group', 'failure_group_jobs', 'schedules_shown', 'schedule_fires', 'provider_workers', 'latency_quantile', 'flag_list', 'approvals_shown', 'approval_shown',
        'mail_state', 'mail_list', 'mail_shown', 'template_source', 'template_built_in', 'template_history', 'quest_state', 'quest_waves', 'document_state', 'documents_shown', 'document_shown',
        'check_in_state', 'alarms_shown', 'check_ins_due', 'notice_state', 'notice_list', 'webhook_state', 'versions_seen', 'versions_compare', 'changes', 'versions', 'samples_queue', 'samples_kind', 'samples_worker', 'samples_provider', 'samples_storage',
        'sample_at', 'fleet_events', 'operation_preview', 'operation', 'operation_list', 'operation_items', 'audit_list', 'gateways_shown', 'console_sign_out', 'console_signed_out'];
    doors_operator text[] := doors_viewer || array['signal', 'versions_promote', 'versions_drain', 'versions_rollback', 'versions_release', 'fork', 'fork_preview', 'signal_job', 'job_of_key', 'published', 'state_value', 'result', 'wait_for', 'approval_list', 'approval_answer', 'approval_link', 'right_staff', 'right_operate', 'cancel', 'retry', 'retry_fresh', 'reschedule', 'job_priority', 'jobs_do', 'flow_cancel', 'flow_retry', 'flow_ids', 'pause', 'resume', 'limit_set',
        'schedule_pause', 'schedule_resume', 'schedule_run', 'provider_force', 'flag_set', 'mail_resolve', 'mail_cancel', 'mail_story', 'mail_suppress', 'document_retry', 'document_story', 'document_contents',
        'document_output_of', 'check_in_resolve', 'watch_contacts', 'notice_story', 'notice_cancel', 'webhook_enable', 'webhook_redeliver', 'job', 'job_list', 'logs', 'steps', 'redact', 'redact_text', 'kind_fields_set',
        'dead_ids', 'dead_summary', 'operation_start', 'operation_pause', 'operation_resume', 'operation_stop', 'operation_undo', 'operation_step', 'sample_take', 'blob_open', 'blob_piece', 'blob'];
    doors_client text[] := array['ai_ask', 'ai_answer', 'ai_own', 'ai_switch', 'document_analysis', 'signal', 'signal_job', 'job_of_key', 'published', 'state_value', 'result', 'wait_for', 'enqueue', 'enqueue_as', 'enqueue_many', 'enqueue_copied', 'enqueue_numbered', 'cancel', 'flow_cancel', 'flow_tree', 'job', 'why', 'own_jobs', 'now', 'event_publish', 'flag_on',
        'mail_send', 'mail_password_reset', 'mail_account_verification', 'mail_welcome', 'mail_account_notification', 'mail_cancel', 'mail_reschedule', 'mail_message', 'template_render',
        'family_create', 'family_zone', 'family_join', 'family_leave', 'family_invite', 'family_uninvite', 'family_invitations', 'person_erase', 'person_export', 'mood_log', 'mood_log_many', 'mood_delete', 'moods', 'hobby_save', 'hobbies',
        'hobby_presets', 'hobby_seen', 'cards', 'card_answer', 'quest_today', 'quest_complete', 'quest_complete_many', 'quest_undo', 'quest_history', 'points', 'streak',
        'weekly_stats', 'subscription_mine', 'subscription_set', 'subscription_link',
        'document_upload', 'document_register', 'document_delete', 'document_retry', 'document_text', 'document_search', 'document', 'document_list', 'document_link', 'document_feed',
        'chat_thread_create', 'chat_threads', 'chat_messages', 'chat_send', 'chat_read', 'chat_unread', 'chat_delete', 'chat_search', 'chat_status', 'chat_leave', 'chat_upload', 'chat_attachment_link',
        'lesson_put', 'lesson_delete', 'lesson', 'lesson_list', 'media_process', 'media', 'media_link', 'media_delete',
        'check_in', 'check_in_arm', 'check_in_disarm', 'check_in_set_interval', 'check_in_pause', 'check_in_alarm', 'check_in_help', 'check_in_drill', 'check_in_contact',
        'check_in_contact_remove', 'check_in_consent_ask', 'check_in_accept', 'check_in_respond', 'check_in_show',
        'device_add', 'device_remove', 'notice_preferences', 'person_profile', 'person_show', 'own_notice_schedule', 'own_notice_move', 'own_notice_cancel',
        'sync_push', 'sync_device_add', 'sync_device_remove', 'sync_devices', 'gateway_begin', 'gateway_end', 'feed_mine', 'feed_position', 'sync_pull', 'sync_push_text'];
    doors_worker text[] := array['rooms_installed', 'kinds_waiting', 'ai_ask', 'ai_answer', 'ai_own', 'ai_switch', 'document_analysis', 'ai_providers_tell', 'ai_keep', 'ai_purposes', 'ai_switches', 'ai_list', 'ai_state', 'ai_take', 'ai_troubles', 'ai_call_open', 'ai_call_close', 'ai_answered', 'ai_failed', 'ai_check', 'ai_batch_next', 'ai_batch_open', 'ai_batch_take', 'ai_batch_calls', 'ai_batch_sending', 'ai_batch_sent', 'ai_batch_results', 'ai_batch_end', 'ai_batch_uploaded', 'ai_leftovers_due', 'ai_leftover_tried', 'ai_leftovers_later', 'signal', 'changed', 'signal_job', 'job_of_key', 'published', 'state_value', 'result', 'wait_for', 'publish', 'state_put', 'approval_link', 'approval_page', 'approval_answer_by_link', 'approvals_remind', 'signals_tell', 'wait', 'step_undoable', 'step_undone', 'approval_list', 'approval_answer', 'enqueue', 'enqueue_as', 'enqueue_many', 'enqueue_copied', 'enqueue_numbered', 'enqueue_bulk', 'cancel', 'retry', 'reschedule', 'job', 'why', 'own_jobs', 'now',
        'register_kinds', 'session_kinds', 'versions_mark', 'versions', 'register_lines', 'register_queues', 'horizon', 'claim', 'claim_one', 'claim_limited', 'lanes', 'lanes_above', 'lanes_between', 'promote', 'is_due_between', 'finish', 'complete', 'recorded', 'session_open', 'beat', 'watch', 'rescue',
        'session_close', 'worker_refused', 'leases_held', 'leases_confirm', 'leases_read', 'leases_return', 'cancels', 'heed_cancels', 'maintain', 'queue_list', 'retentions', 'schema_state', 'depths', 'rates', 'orphans', 'troubles', 'run_troubles', 'hook_troubles', 'retrying', 'rooms', 'room_lanes', 'why_queue', 'measures', 'measures_fleet', 'outstanding', 'blocked_count',
        'gates_open', 'slots_sweep', 'slots_mend', 'unique_expire', 'limit_list', 'parked_count',
        'step', 'runs', 'steps', 'report', 'logs', 'retry_fresh', 'fork', 'fork_preview', 'forks_of', 'rehearse_ids', 'rehearse_sample', 'rehearse_read',
        'schedule_set', 'schedule_wait', 'schedules_due', 'schedule_advance', 'schedule_problem',
        'flows_advance', 'flows_check', 'flow_cancel', 'flow_retry', 'flow_ids', 'flow_tree', 'spawn', 'results_before', 'event_publish', 'events_changes', 'event', 'event_list',
        'provider_flush', 'provider_tidy', 'provider_workers', 'latency_quantile', 'flag_on', 'flag_list',
        'blob', 'blob_list', 'blob_touch', 'blob_upload', 'blob_stage', 'blob_store', 'blob_put', 'blob_drop', 'blob_open', 'blob_link_holds', 'chat_link_holds', 'blob_piece', 'blob_keep', 'blob_release',
        'blobs_forsaken', 'blob_forget', 'blob_uploads_expire', 'template_source', 'template_built_in',
        'mail_send', 'mail_password_reset', 'mail_account_verification', 'mail_welcome', 'mail_account_notification', 'mail_cancel', 'mail_reschedule', 'mail_message', 'template_render',
        'mail_take', 'mail_freeze', 'mail_failed', 'mail_batch_open', 'mail_batch_again', 'mail_batch_record', 'mail_letters', 'mail_route_by', 'mail_told',
        'mail_event', 'mail_forsaken', 'mail_retire', 'mail_suppress', 'mail_unsubscribe', 'mail_silent', 'mail_asked', 'mail_changes', 'mail_state', 'mail_list', 'mail_story',
        'family_create', 'family_zone', 'family_join', 'family_leave', 'family_invite', 'family_uninvite', 'family_invitations', 'person_erase', 'person_export', 'mood_log', 'mood_log_many', 'mood_delete', 'moods', 'hobby_save', 'hobbies',
        'hobby_presets', 'hobby_seen', 'cards', 'card_answer', 'quest_today', 'quest_complete', 'quest_complete_many', 'quest_undo', 'quest_history', 'points', 'streak',
        'weekly_stats', 'subscription_mine', 'subscription_set', 'subscription_link', 'subscription_stripe', 'subscription_apple', 'subscriptions_run', 'subscription_list', 'subscription_show',
        'subscription_plans', 'subscription_state', 'subscription_refused',
        'points_award', 'notice_send', 'notice_cancel', 'notice_move', 'quest_rollover', 'quest_rollover_due', 'quest_state', 'quest_zones_check', 'quest_rules_set',
        'document_upload', 'document_register', 'document_delete', 'document_retry', 'document_text', 'document_search', 'document', 'document_list', 'document_link', 'document_feed', 'document_story', 'document_progress',
        'document_output_of', 'documents_changes', 'document_state', 'document_take', 'document_stage', 'document_received', 'document_inspected', 'document_waiting',
        'document_cached', 'document_pages_put', 'document_spread', 'document_ended', 'document_codes', 'document_part', 'document_contents', 'documents_check', 'media_take', 'media_made', 'media_failed',
        'chat_thread_create', 'chat_threads', 'chat_messages', 'chat_send', 'chat_read', 'chat_unread', 'chat_delete', 'chat_search', 'chat_status', 'chat_leave', 'chat_upload', 'chat_attachment_link',
        'lesson_put', 'lesson_delete', 'lesson', 'lesson_list', 'media_process', 'media', 'media_link', 'media_delete',
        'check_in', 'check_in_arm', 'check_in_disarm', 'check_in_set_interval', 'check_in_pause', 'check_in_alarm', 'check_in_help', 'check_in_drill', 'check_in_contact',
        'check_in_contact_remove', 'check_in_consent_ask', 'check_in_accept', 'check_in_respond', 'check_in_show',
        'watch_step', 'watch_wanted', 'check_in_state', 'check_in_resolve', 'check_in_consent', 'check_in_confirm', 'alarm_page', 'checkin_changes', 'watch_contacts',
        'device_add', 'device_remove', 'device_list', 'notice_preferences', 'person_profile', 'person_show', 'own_notice_schedule', 'own_notice_move', 'own_notice_cancel', 'notice_take', 'notice_next', 'notice_mail', 'notice_record',
        'notice_state', 'notice_list', 'notice_story', 'provider_token_take', 'provider_token_put',
        'webhook_fan_out', 'webhook_claim', 'webhook_wait', 'webhook_record', 'webhook_consent', 'webhook_target', 'webhook_state', 'webhook_secrets', 'webhook_seal',
        'link_key_set', 'upload_arrived', 'upload_reserve', 'upload_renew', 'upload_release', 'blob_allow', 'blob_sweep_turn', 'template_unchecked', 'template_checked', 'right_staff',
        'jobs_read', 'check_in_never', 'check_in_rules_set', 'mail_defaults_tell', 'error_map', 'operation_step', 'sample_take', 'gateways_shown', 'feed_mine', 'feed_position', 'sync_pull'];
    doors_admin text[] := doors_worker || array['ai_purpose_put', 'ai_purpose_shown', 'ai_shown', 'subscriptions_shown', 'subscription_shown', 'right_view', 'right_operate', 'approvals_shown', 'approval_shown', 'queue_overview', 'schedules_shown', 'mail_shown', 'documents_shown', 'document_shown', 'quest_waves', 'alarms_shown', 'check_ins_due', 'job_delete', 'job_list', 'pause', 'resume', 'retention_set', 'pins', 'sizes', 'dead_count', 'partitions', 'queue_load', 'job_ids', 'job_count', 'jobs_do',
        'dead_ids', 'step_set', 'step_forget', 'published_shown', 'state_value_shown', 'dead_summary', 'jobs_find', 'job_errors', 'names_known', 'queue_remove', 'sealed_keys', 'sealed_page', 'reseal', 'failure_groups', 'failure_group', 'failure_group_jobs', 'kind_list', 'kind_fields_set', 'jobs_by_field', 'redactions', 'redactions_set', 'kind_redactions_set', 'redact', 'redact_text', 'job_shown', 'jobs_shown', 'logs_shown', 'steps_shown',
        'right_admin', 'consent_block', 'consent_unblock', 'grant_backend', 'revoke_backend', 'trust_claims', 'distrust_claims', 'grant_enqueue', 'revoke_enqueue', 'errors_of', 'progress_of', 'result_of', 'test_clock_advance', 'limit_set', 'slots_audit',
        'schedule_remove', 'schedule_pause', 'schedule_resume', 'schedule_run', 'schedule_fires', 'grant_publish', 'revoke_publish',
        'provider_force', 'flag_set', 'template_publish', 'template_use', 'template_history',
        'mail_resolve', 'mail_unsuppress', 'mail_suppressions', 'mail_erase', 'mail_audits', 'app_name_set',
        'chat_rules_set', 'chat_remove', 'chat_threads_shown',
        'feed_restored', 'quest_audit', 'quest_repair', 'quota_set', 'subscription_plan_set', 'subscription_plan_remove', 'document_default_set', 'document_defaults',
        'webhook_add', 'webhook_rotate', 'webhook_remove', 'webhook_enable', 'webhook_redeliver',
        'operation_preview', 'operation_start', 'operation_pause', 'operation_resume', 'operation_stop', 'operation_undo', 'operation', 'operation_list', 'operation_items',
        'job_priority', 'audit_list', 'audit_keep', 'samples_queue', 'samples_kind', 'samples_worker', 'samples_provider', 'samples_storage', 'sample_at', 'fleet_events', 'versions_seen', 'versions_compare', 'changes', 'versions_promote', 'versions_drain', 'versions_rollback', 'versions_release', 'console_sign_out', 'console_signed_out'];
begin
    -- No call is worth compiling its plan, and a plan that was told to avoid something has a cost that asks for it. Here for all doors at once, because
    -- one that is forgotten takes seconds where others take milliseconds.
    for one in
        select p.oid::regprocedure as signature from pg_proc p
         where p.pronamespace = 'millrace'::regnamespace and p.prosecdef
           and exists (select from unnest(p.proconfig) c where starts_with(c, 'search_path='))
           and not exists (select from unnest(p.proconfig) c where starts_with(c, 'jit='))
    loop
        execute format('alter function %s set jit = off', one.signature);
    end loop;
    -- Before its first grant: the owner must not have the right only because it is the owner.
    if (select p.proacl is null from pg_proc p where p.oid = 'millrace.right_claims()'::regprocedure) then
        execute 'revoke execute on function millrace.right_claims() from public, current_user';
    end if;
    execute 'revoke all on schema millrace from public';
    execute 'revoke all on all tables in schema millrace from public';
    execute 'revoke all on all sequences in schema millrace from public';
    execute 'revoke all on all routines in schema millrace from public';
    -- Revokes default privileges that somebody may have granted to PUBLIC. The right of PUBLIC to execute new functions cannot be revoked
    -- for a schema; but only a migration creates functions here, and it ends with these lines.
    execute 'alter default privileges in schema millrace revoke all on tables from public';
    execute 'alter default privileges in schema millrace revoke all on sequences from public';
    execute 'alter default privileges in schema millrace revoke all on routines from public';
    for one in
        select p.oid::regprocedure as signature, p.proname, r.role
          from pg_proc p
          join lateral (values (client, doors_client), (worker, doors_worker), (admin, doors_admin), (viewer, doors_viewer), (operator, doors_operator), (gateway, doors_gateway)) r(role, doors) on p.proname = any (r.doors)
         where p.pronamespace = 'millrace'::regnamespace and to_regrole(quote_ident(r.role)) is not null
    loop
        execute format('grant execute on function %s to %I', one.signature, one.role);
    end loop;
    -- The planner inlines enqueue's only call, so a role that was granted enqueue by name also needs the function behind it.
    for one in
        select distinct behind.oid::regprocedure as signature, a.grantee::regrole as role
          from pg_proc door cross join lateral aclexplode(door.proacl) a
          join pg_proc behind on behind.proname = 'enqueue_as' and behind.pronamespace = door.pronamespace
         where door.proname = 'enqueue' and door.pronamespace = 'millrace'::regnamespace and a.privilege_type = 'EXECUTE' and a.grantee <> 0
    loop
        execute format('grant execute on function %s to %s', one.signature, one.role);
    end loop;
    foreach client in array array[client, worker, admin, viewer, operator, gateway] loop
        if to_regrole(quote_ident(client)) is not null then
            execute format('grant usage on schema millrace to %I', client);
        end if;
    end loop;
    if to_regrole(quote_ident(worker)) is not null then
        execute format('grant select on millrace.workers, millrace.queues, millrace.limits, millrace.schedules, millrace.events, millrace.providers, millrace.provider_events, millrace.templates,
            millrace.mail_messages, millrace.mail_attempts, millrace.mail_events, millrace.mail_analytics, millrace.families, millrace.quests, millrace.notices,
            millrace.documents, millrace.document_pages, millrace.media_overview, millrace.quotas,
            millrace.check_ins, millrace.alarms, millrace.alarm_history,
            millrace.webhooks, millrace.webhook_deliveries, millrace.made to %I', worker);
    end if;
    if to_regrole(quote_ident(admin)) is not null then
        execute format('grant select on millrace.jobs, millrace.queues, millrace.workers, millrace.limits, millrace.schedules, millrace.events, millrace.providers, millrace.provider_events, millrace.templates,
            millrace.mail_messages, millrace.mail_attempts, millrace.mail_events, millrace.mail_analytics, millrace.mail_audit_log, millrace.families, millrace.quests, millrace.notices,
            millrace.documents, millrace.document_pages, millrace.media_overview, millrace.quotas,
            millrace.check_ins, millrace.alarms, millrace.alarm_history,
            millrace.webhooks, millrace.webhook_deliveries, millrace.made to %I', admin);
    end if;
    foreach viewer in array array[viewer, operator] loop
        if to_regrole(quote_ident(viewer)) is not null then
            execute format('grant select on millrace.queues, millrace.workers, millrace.limits, millrace.providers, millrace.provider_events, millrace.templates,
                millrace.mail_messages, millrace.mail_attempts, millrace.mail_analytics, millrace.check_ins, millrace.alarms, millrace.alarm_history,
                millrace.webhooks, millrace.webhook_deliveries, millrace.document_pages, millrace.quotas to %I', viewer);
        end if;
    end loop;
    if to_regrole(quote_ident(operator)) is not null then
        execute format('grant select on millrace.jobs, millrace.schedules, millrace.mail_events, millrace.notices, millrace.documents, millrace.families, millrace.quests, millrace.events to %I', operator);
    end if;
end $$;
