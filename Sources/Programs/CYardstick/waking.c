// Flags that nobody could pass on to a package of theirs stand here.
#pragma GCC diagnostic error "-Wall"
#pragma GCC diagnostic error "-Wextra"

#include "CYardstick.h"
#include "statements.h"

#include <libpq-fe.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/// What the caller and the listener share. `taken` counts the jobs that the listener has had in its hands.
typedef struct {
    const char *conninfo;
    char session[24], queue[12], lane[12], kind[12];
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int listening, taken, stop;
    double at;
    char failure[256];
} meeting;

enum { most_wait_s = 30 };

static void fail(meeting *one, const char *what) {
    pthread_mutex_lock(&one->lock);
    if (!one->failure[0]) snprintf(one->failure, sizeof one->failure, "%s", what);
    pthread_cond_broadcast(&one->changed);
    pthread_mutex_unlock(&one->lock);
}

static int is_over(meeting *one) {
    pthread_mutex_lock(&one->lock);
    int over = one->stop || one->failure[0];
    pthread_mutex_unlock(&one->lock);
    return over;
}

static int succeeds(meeting *one, PGconn *connection, PGresult *result, ExecStatusType wanted) {
    int done = PQresultStatus(result) == wanted;
    if (!done) fail(one, PQerrorMessage(connection));
    PQclear(result);
    return done;
}

static PGconn *reach(meeting *one) {
    PGconn *connection = yardstick_connect(one->conninfo);
    if (PQstatus(connection) != CONNECTION_OK) {
        fail(one, PQerrorMessage(connection));
        PQfinish(connection);
        return NULL;
    }
    return connection;
}

/// Takes what stands in line, says so, ends it. Returns how many jobs that were, or -1.
static int take(meeting *one, PGconn *connection, int64_t number) {
    char text[24];
    snprintf(text, sizeof text, "%lld", (long long)number);
    const char *values[] = {one->session, text, one->queue, one->lane, "0", "10"};
    PGresult *claimed = PQexecPrepared(connection, "claim", 6, values, NULL, NULL, 0);
    if (PQresultStatus(claimed) != PGRES_TUPLES_OK) return succeeds(one, connection, claimed, PGRES_TUPLES_OK) - 1;
    double at = yardstick_now();
    int count = PQntuples(claimed);
    char ids[10 * 24 + 2] = "{";
    for (int row = 0; row < count; row++) {
        snprintf(ids + strlen(ids), sizeof ids - strlen(ids), "%s%s", row ? "," : "", PQgetvalue(claimed, row, 1));
    }
    strcat(ids, "}");
    PQclear(claimed);
    if (count == 0) return 0;
    const char *ending[] = {one->session, text, ids, one->kind, one->queue};
    PGresult *ended = PQexecPrepared(connection, "finish", 5, ending, NULL, NULL, 0);
    if (!succeeds(one, connection, ended, PGRES_COMMAND_OK)) return -1;
    pthread_mutex_lock(&one->lock);
    one->at = at;
    one->taken += count;
    pthread_cond_broadcast(&one->changed);
    pthread_mutex_unlock(&one->lock);
    return count;
}

static void *listen_and_take(void *argument) {
    meeting *one = argument;
    PGconn *connection = reach(one);
    int64_t number = 1;  // the low bits of a lease's number are its retention class: standard
    int ready = connection
        && succeeds(one, connection, PQprepare(connection, "claim", yardstick_claim, 0, NULL), PGRES_COMMAND_OK)
        && succeeds(one, connection, PQprepare(connection, "finish", yardstick_finish, 0, NULL), PGRES_COMMAND_OK)
        && succeeds(one, connection, PQexec(connection, "listen millrace_yardstick"), PGRES_COMMAND_OK);
    if (ready) {
        pthread_mutex_lock(&one->lock);
        one->listening = 1;
        pthread_cond_broadcast(&one->changed);
        pthread_mutex_unlock(&one->lock);
    }
    while (ready && !is_over(one)) {
        PGnotify *heard = PQnotifies(connection);
        if (!heard) {
            struct pollfd place = {.fd = PQsocket(connection), .events = POLLIN};
            if (poll(&place, 1, 100) > 0 && !PQconsumeInput(connection)) {
                fail(one, PQerrorMessage(connection));
                break;
            }
            continue;
        }
        PQfreemem(heard);
        if (take(one, connection, number) < 0) break;
        number += 8;
    }
    if (connection) PQfinish(connection);
    return NULL;
}

static const char *const enqueue =
    "with new as (insert into millrace.job (id, kind, queue, lane, enqueued_at, args, owner)"
    "    values (nextval('millrace.seq'), $1::int, $2::int, $3::int, now(), '{\"n\": 1}', current_user) returning id),"
    "placed as (insert into millrace.ready (seq, job, queue, kind, lane) select id, id, $2, $1, $3 from new)"
    "select pg_notify('millrace_yardstick', '')";

/// Waits until the listener listens and has taken `taken` notifications.
static int meet(meeting *one, int taken) {
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += most_wait_s;
    pthread_mutex_lock(&one->lock);
    int late = 0;
    while (!late && !one->failure[0] && !(one->listening && one->taken >= taken)) {
        late = pthread_cond_timedwait(&one->changed, &one->lock, &until) != 0;
    }
    int met = !one->failure[0] && one->listening && one->taken >= taken;
    pthread_mutex_unlock(&one->lock);
    if (late) fail(one, "the listener did not get a job in time: is another worker running?");
    return met;
}

yardstick_result yardstick_wake(
    const char *conninfo, int64_t session, int32_t queue, int32_t lane, int32_t kind, int32_t tries, int32_t pause_ms,
    double *milliseconds) {
    meeting one = {.conninfo = conninfo, .lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};
    yardstick_result result = {0};
    snprintf(one.session, sizeof one.session, "%lld", (long long)session);
    snprintf(one.queue, sizeof one.queue, "%d", queue);
    snprintf(one.lane, sizeof one.lane, "%d", lane);
    snprintf(one.kind, sizeof one.kind, "%d", kind);
    pthread_t listener;
    pthread_create(&listener, NULL, listen_and_take, &one);
    double began = yardstick_now();
    PGconn *connection = reach(&one);
    int ready = connection
        && succeeds(&one, connection, PQprepare(connection, "enqueue", enqueue, 0, NULL), PGRES_COMMAND_OK) && meet(&one, 0);
    unsigned random = 1;
    while (ready && result.jobs < tries) {
        long pause = pause_ms > 1 ? pause_ms / 2 + rand_r(&random) % pause_ms : pause_ms;
        struct timespec rest = {.tv_sec = pause / 1000, .tv_nsec = pause % 1000 * 1000000};
        nanosleep(&rest, NULL);
        const char *values[] = {one.kind, one.queue, one.lane};
        double called = yardstick_now();
        ready = succeeds(
                    &one, connection, PQexecPrepared(connection, "enqueue", 3, values, NULL, NULL, 0), PGRES_TUPLES_OK)
            && meet(&one, (int)result.jobs + 1);
        if (ready) milliseconds[result.jobs++] = (one.at - called) * 1e3;
    }
    result.seconds = yardstick_now() - began;
    pthread_mutex_lock(&one.lock);
    one.stop = 1;
    pthread_mutex_unlock(&one.lock);
    pthread_join(listener, NULL);
    memcpy(result.failure, one.failure, sizeof result.failure);
    if (connection) PQfinish(connection);
    return result;
}
