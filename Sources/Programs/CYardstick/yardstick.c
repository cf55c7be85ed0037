// Flags that nobody could pass on to a package of theirs stand here.
#pragma GCC diagnostic error "-Wall"
#pragma GCC diagnostic error "-Wextra"

#include "CYardstick.h"
#include "statements.h"

#include <arpa/inet.h>
#include <endian.h>
#include <libpq-fe.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { most_threads = 64, most_batch = 10000 };

typedef struct {
    const char *conninfo;
    int64_t session;
    int64_t number;
    int32_t queue, lane, kind, batch;
    PGconn *connection;
    const char *name;
    const char *const *values;
    int count;
    double seconds;
    pthread_barrier_t *start;
    int64_t jobs, most;
    char failure[256];
} task;

double yardstick_now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

PGconn *yardstick_open(const char *conninfo) {
    PGconn *connection = PQconnectdb(conninfo);
    if (PQstatus(connection) == CONNECTION_OK)
        PQclear(PQexec(connection, "set search_path = pg_catalog, pg_temp; set application_name = 'millrace-yardstick'"));
    return connection;
}

PGconn *yardstick_connect(const char *conninfo) {
    PGconn *connection = yardstick_open(conninfo);
    if (PQstatus(connection) == CONNECTION_OK)
        PQclear(PQexec(
            connection,
            "set enable_seqscan = off; set enable_hashjoin = off; set enable_mergejoin = off; set jit = off;"
            "set plan_cache_mode = force_generic_plan"));
    return connection;
}

static void fail(task *one, const char *what) {
    if (!one->failure[0]) snprintf(one->failure, sizeof one->failure, "%s", what);
}

static PGconn *open_connection(task *one) {
    PGconn *connection = yardstick_connect(one->conninfo);
    if (PQstatus(connection) != CONNECTION_OK) {
        fail(one, PQerrorMessage(connection));
        PQfinish(connection);
        return NULL;
    }
    return connection;
}

static int prepare(task *one, PGconn *connection, const char *name, const char *statement) {
    PGresult *result = PQprepare(connection, name, statement, 0, NULL);
    int done = PQresultStatus(result) == PGRES_COMMAND_OK;
    if (!done) fail(one, PQerrorMessage(connection));
    PQclear(result);
    return done;
}

static void put8(char *to, int64_t value) {
    uint64_t big = htobe64((uint64_t)value);
    memcpy(to, &big, 8);
}

static void put4(char *to, int32_t value) {
    uint32_t big = htonl((uint32_t)value);
    memcpy(to, &big, 4);
}

static int64_t get8(const char *from) {
    uint64_t big;
    memcpy(&big, from, 8);
    return (int64_t)be64toh(big);
}

const char *const yardstick_claim =
    "with gone as materialized ("
    "    delete from millrace.ready r where r.ctid = any (array("
    "        select c.ctid from millrace.ready c where c.queue = $3::int and c.lane = $4::int and c.seq > $5::bigint"
    "         order by c.seq limit $6::int for update skip locked))"
    "    returning r.seq, r.job"
    "), leased as ("
    "    insert into millrace.lease (session, number, at, n, lo, hi, ids)"
    "    select $1::bigint, $2::bigint, now(), count(*), min(g.job), max(g.job), array_agg(g.job) from gone g having count(*) > 0)"
    "select g.seq, g.job, j.args from gone g"
    "  join millrace.job j on j.id = g.job"
    "   and j.id between (select min(b.job) from gone b) and (select max(b.job) from gone b)"
    // as durable as ours, which does not wait for the disk either
    " where (select set_config('synchronous_commit', 'off', true)) is not null";

const char *const yardstick_finish =
    "with ended as (delete from millrace.lease where session = $1::bigint and number = $2::bigint returning at)"
    "insert into millrace.history (id, session, number, started, finished, kind, queue, ms, class, outcome, attempt, crashes)"
    "select i, $1, $2, e.at, now(), $4::int, $5::int, 0, 1, 1, 1, 0 from ended e cross join unnest($3::bigint[]) i";

static void *drain(void *argument) {
    task *one = argument;
    PGconn *connection = open_connection(one);
    char *ids = malloc(20 + 12 * (size_t)most_batch);
    int ready = connection && ids && prepare(one, connection, "claim", yardstick_claim)
        && prepare(one, connection, "finish", yardstick_finish);
    pthread_barrier_wait(one->start);
    int64_t floor = 0;
    while (ready && one->jobs < one->most) {
        char session[8], number[8], queue[4], lane[4], from[8], batch[4], kind[4];
        put8(session, one->session);
        put8(number, one->number);
        put4(queue, one->queue);
        put4(lane, one->lane);
        put8(from, floor);
        put4(batch, one->batch);
        put4(kind, one->kind);
        const char *values[] = {session, number, queue, lane, from, batch};
        const int lengths[] = {8, 8, 4, 4, 8, 4}, formats[] = {1, 1, 1, 1, 1, 1};
        PGresult *claimed = PQexecPrepared(connection, "claim", 6, values, lengths, formats, 1);
        if (PQresultStatus(claimed) != PGRES_TUPLES_OK) {
            fail(one, PQerrorMessage(connection));
            PQclear(claimed);
            break;
        }
        int count = PQntuples(claimed);
        if (count == 0) {
            PQclear(claimed);
            break;
        }
        put4(ids, 1);
        put4(ids + 4, 0);
        put4(ids + 8, 20);  // bigint
        put4(ids + 12, count);
        put4(ids + 16, 1);
        for (int row = 0; row < count; row++) {
            int64_t seq = get8(PQgetvalue(claimed, row, 0));
            if (seq > floor) floor = seq;
            put4(ids + 20 + 12 * row, 8);
            memcpy(ids + 24 + 12 * row, PQgetvalue(claimed, row, 1), 8);
        }
        PQclear(claimed);
        const char *ending[] = {session, number, ids, kind, queue};
        const int sizes[] = {8, 8, 20 + 12 * count, 4, 4};
        PGresult *ended = PQexecPrepared(connection, "finish", 5, ending, sizes, formats, 1);
        int done = PQresultStatus(ended) == PGRES_COMMAND_OK && atoi(PQcmdTuples(ended)) == count;
        if (!done) fail(one, *PQerrorMessage(connection) ? PQerrorMessage(connection) : "a lease was gone");
        PQclear(ended);
        if (!done) break;
        one->jobs += count;
        one->number += (int64_t)most_threads * 8;
    }
    free(ids);
    if (connection) PQfinish(connection);
    return NULL;
}

const char *const yardstick_enqueue =
    "with new as (insert into millrace.job (id, kind, queue, lane, enqueued_at, args, owner)"
    "    values (nextval('millrace.seq'), $1::int, $2::int, $3::int, now(), $4::jsonb, current_user) returning id)"
    "insert into millrace.ready (seq, job, queue, kind, lane) select id, id, $2::int, $1::int, $3::int from new returning job";

static int execute(task *one) {
    PGresult *result = PQexecPrepared(one->connection, one->name, one->count, one->values, NULL, NULL, 0);
    ExecStatusType status = PQresultStatus(result);
    int done = status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK;
    if (!done) fail(one, PQerrorMessage(one->connection));
    PQclear(result);
    return done;
}

/// One statement after the other, each in a transaction of its own.
static void *call(void *argument) {
    task *one = argument;
    pthread_barrier_wait(one->start);
    double end = yardstick_now() + one->seconds;
    while (yardstick_now() < end && execute(one)) one->jobs += 1;
    return NULL;
}

static const char *const enqueue_bulk =
    "with new as materialized (select nextval('millrace.seq') as id, format('{\"n\": %s}', n)::jsonb as args from generate_series(1, $4::int) n"
    "), written as (insert into millrace.job (id, kind, queue, lane, enqueued_at, args, owner)"
    "    select id, $1::int, $2::int, $3::int, now(), args, current_user from new)"
    "insert into millrace.ready (seq, job, queue, kind, lane) select id, id, $2, $1, $3 from new";

static void *enqueue_many(void *argument) {
    task *one = argument;
    PGconn *connection = open_connection(one);
    int ready = connection && prepare(one, connection, "enqueue", enqueue_bulk);
    pthread_barrier_wait(one->start);
    char kind[4], queue[4], lane[4], batch[4];
    put4(kind, one->kind);
    put4(queue, one->queue);
    put4(lane, one->lane);
    const char *values[] = {kind, queue, lane, batch};
    const int lengths[] = {4, 4, 4, 4}, formats[] = {1, 1, 1, 1};
    while (ready && one->jobs < one->most) {
        int64_t size = one->most - one->jobs < one->batch ? one->most - one->jobs : one->batch;
        put4(batch, (int32_t)size);
        PGresult *result = PQexecPrepared(connection, "enqueue", 4, values, lengths, formats, 1);
        int done = PQresultStatus(result) == PGRES_COMMAND_OK;
        if (!done) fail(one, PQerrorMessage(connection));
        PQclear(result);
        if (!done) break;
        one->jobs += size;
    }
    if (connection) PQfinish(connection);
    return NULL;
}

/// Lets each thread do its task, all from one moment on.
static yardstick_result run_tasks(void *(*body)(void *), task *tasks, int threads) {
    yardstick_result result = {0};
    pthread_t running[most_threads];
    pthread_barrier_t start;
    pthread_barrier_init(&start, NULL, (unsigned)threads + 1);
    for (int i = 0; i < threads; i++) {
        tasks[i].start = &start;
        pthread_create(&running[i], NULL, body, &tasks[i]);
    }
    pthread_barrier_wait(&start);
    double began = yardstick_now();
    for (int i = 0; i < threads; i++) {
        pthread_join(running[i], NULL);
        result.jobs += tasks[i].jobs;
        if (tasks[i].failure[0] && !result.failure[0]) memcpy(result.failure, tasks[i].failure, sizeof result.failure);
    }
    result.seconds = yardstick_now() - began;
    pthread_barrier_destroy(&start);
    return result;
}

static yardstick_result run(void *(*body)(void *), task like, int threads) {
    task tasks[most_threads];
    if (threads < 1 || threads > most_threads || like.batch < 1 || like.batch > most_batch) {
        yardstick_result result = {0};
        snprintf(result.failure, sizeof result.failure, "at most %d threads and batches of %d", most_threads, most_batch);
        return result;
    }
    for (int i = 0; i < threads; i++) {
        tasks[i] = like;
        tasks[i].number = 1 + 8 * (int64_t)i;  // the low bits of a lease's number are its retention class: standard
    }
    return run_tasks(body, tasks, threads);
}

yardstick_result yardstick_drain(
    const char *conninfo, int64_t session, int32_t queue, int32_t lane, int32_t kind, int32_t batch, int threads, int64_t most) {
    task like = {
        .conninfo = conninfo, .session = session, .queue = queue, .lane = lane, .kind = kind, .batch = batch, .most = most};
    return run(drain, like, threads);
}

enum { most_statements = 8, most_values = 8, settling_calls = 10 };

typedef struct {
    char name[16];
    char *text;
    char *values[most_values];
    int count;
} prepared;

struct yardstick_callers {
    int threads, count;
    PGconn *connections[most_threads];
    prepared statements[most_statements];
    char failure[256];
};

static task task_of(yardstick_callers *callers, int thread, int which) {
    const prepared *statement = &callers->statements[which];
    return (task){
        .connection = callers->connections[thread], .name = statement->name, .values = (const char *const *)statement->values,
        .count = statement->count};
}

/// Under the settings a client has, not the forced plans.
static int settle(yardstick_callers *callers, int thread, const char *conninfo) {
    task one = {0};
    PGconn *connection = callers->connections[thread] = yardstick_open(conninfo);
    int ready = PQstatus(connection) == CONNECTION_OK;
    if (!ready) fail(&one, PQerrorMessage(connection));
    for (int which = 0; ready && which < callers->count; which++) {
        ready = prepare(&one, connection, callers->statements[which].name, callers->statements[which].text);
        task calls = task_of(callers, thread, which);
        for (int n = 0; ready && n < settling_calls; n++) ready = execute(&calls);
        if (calls.failure[0]) one = calls;
    }
    if (!ready) memcpy(callers->failure, one.failure, sizeof callers->failure);
    return ready;
}

yardstick_callers *yardstick_callers_open(
    const char *conninfo, const yardstick_statement *statements, int count, int threads) {
    yardstick_callers *callers = calloc(1, sizeof *callers);
    if (!callers) return NULL;
    if (threads < 1 || threads > most_threads || count < 1 || count > most_statements) {
        snprintf(callers->failure, sizeof callers->failure, "at most %d threads and %d statements", most_threads, most_statements);
        return callers;
    }
    for (int which = 0; which < count; which++) {
        prepared *one = &callers->statements[which];
        snprintf(one->name, sizeof one->name, "call %d", which);
        one->text = strdup(statements[which].text);
        if (statements[which].count > most_values) {
            snprintf(callers->failure, sizeof callers->failure, "at most %d values", most_values);
            return callers;
        }
        for (; one->count < statements[which].count; one->count++) one->values[one->count] = strdup(statements[which].values[one->count]);
        callers->count++;
    }
    while (callers->threads < threads && settle(callers, callers->threads, conninfo)) callers->threads++;
    return callers;
}

yardstick_result yardstick_callers_turn(yardstick_callers *callers, int which, int first, double seconds) {
    yardstick_result result = {0};
    memcpy(result.failure, callers->failure, sizeof result.failure);
    if (result.failure[0]) return result;
    task tasks[most_threads];
    if (first >= 0) {
        task once = task_of(callers, 0, first);
        if (!execute(&once)) {
            memcpy(result.failure, once.failure, sizeof result.failure);
            return result;
        }
    }
    for (int i = 0; i < callers->threads; i++) {
        tasks[i] = task_of(callers, i, which);
        tasks[i].seconds = seconds;
    }
    return run_tasks(call, tasks, callers->threads);
}

void yardstick_callers_close(yardstick_callers *callers) {
    for (int i = 0; i < most_threads; i++)
        if (callers->connections[i]) PQfinish(callers->connections[i]);
    for (int which = 0; which < most_statements; which++) {
        free(callers->statements[which].text);
        for (int n = 0; n < most_values; n++) free(callers->statements[which].values[n]);
    }
    free(callers);
}

yardstick_result yardstick_enqueue_bulk(
    const char *conninfo, int32_t queue, int32_t lane, int32_t kind, int64_t jobs, int32_t batch) {
    task like = {.conninfo = conninfo, .queue = queue, .lane = lane, .kind = kind, .batch = batch, .most = jobs};
    return run(enqueue_many, like, 1);
}
