-- Where plain jobs go, by the names their callers give: one look-up instead of three for each enqueue. A copy of what `kind` and `queue` say;
-- the name of the queue is '' where callers give none. Workers note that of their kinds, callers the rest; without a row a job goes the longer way.
create table millrace.route (
    kind_name text not null,
    queue_name text not null,
    kind int not null references millrace.kind (id) on delete cascade,
    queue int not null references millrace.queue (id) on delete cascade,
    primary key (kind_name, queue_name)
);

-- Names and numbers of kinds and queues never change; which queue a kind's jobs go to may.
create function millrace.route_moves() returns trigger
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
    if current_setting('transaction_isolation') <> 'read committed' then
        perform millrace.refuse(format('the queue of the kind %s can be changed in a transaction that is read committed only', new.name), 'queue',
            'What others have noted of it since the transaction began could not be seen.', code => '25001');
    end if;
    delete from millrace.route r where r.kind_name = old.name and r.queue_name = '';
    return null;
end $$;
create trigger a_route_follows_its_kind after update of queue on millrace.kind for each row
    when (new.queue is distinct from old.queue) execute function millrace.route_moves();
