// Flags that nobody could pass on to a package of theirs stand here.
#pragma GCC diagnostic error "-Wall"
#pragma GCC diagnostic error "-Wextra"

#include "CYardstick.h"
#include "statements.h"

#include <libpq-fe.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/// One caller on a connection of its own.
typedef struct {
    const char *conninfo, *role, *claims, *value, *text;
    int each;
    double until;
    pthread_barrier_t *start;
    int64_t jobs, most;
    double *milliseconds;
    char failure[256];
} caller;

static int well(caller *one, PGconn *connection, PGresult *result) {
    ExecStatusType status = PQresultStatus(result);
    int done = status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK || status == PGRES_PIPELINE_SYNC;
    if (!done && !one->failure[0]) snprintf(one->failure, sizeof one->failure, "%s", PQerrorMessage(connection));
    PQclear(result);
    return done;
}

static int settle(caller *one, PGconn *connection) {
    const char *identity = one->each ? "select set_config('role', $1, true), set_config('request.jwt.claims', $2, true)"
                                     : "select set_config('role', $1, false), set_config('request.jwt.claims', $2, false)";
    const char *values[2] = {one->role, one->claims};
    if (!well(one, connection, PQprepare(connection, "identity", identity, 2, NULL))) return 0;
    if (!well(one, connection, PQprepare(connection, "begin", "begin", 0, NULL))) return 0;
    if (!well(one, connection, PQprepare(connection, "commit", "commit", 0, NULL))) return 0;
    if (!one->each && !well(one, connection, PQexecPrepared(connection, "identity", 2, values, NULL, NULL, 0))) return 0;
    return well(one, connection, PQprepare(connection, "call", one->text, 1, NULL));
}

/// A call in the session's role; or, in one round trip, a transaction that takes on role and claims first.
static int make(caller *one, PGconn *connection) {
    const char *values[1] = {one->value}, *claims[2] = {one->role, one->claims};
    if (!one->each) return well(one, connection, PQexecPrepared(connection, "call", 1, values, NULL, NULL, 0));
    int sent = PQsendQueryPrepared(connection, "begin", 0, NULL, NULL, NULL, 0)
        && PQsendQueryPrepared(connection, "identity", 2, claims, NULL, NULL, 0)
        && PQsendQueryPrepared(connection, "call", 1, values, NULL, NULL, 0)
        && PQsendQueryPrepared(connection, "commit", 0, NULL, NULL, NULL, 0) && PQpipelineSync(connection);
    if (!sent) {
        snprintf(one->failure, sizeof one->failure, "%s", PQerrorMessage(connection));
        return 0;
    }
    int good = 1;
    for (int syncs = 0, nulls = 0; !syncs && nulls < 16;) {
        PGresult *result = PQgetResult(connection);
        if (!result) {
            nulls++;  // ends the results of one statement
            continue;
        }
        syncs = PQresultStatus(result) == PGRES_PIPELINE_SYNC;
        good &= well(one, connection, result);
    }
    return good;
}

static void *call_on(void *given) {
    caller *one = given;
    PGconn *connection = yardstick_open(one->conninfo);
    int ready = PQstatus(connection) == CONNECTION_OK;
    if (!ready) snprintf(one->failure, sizeof one->failure, "%s", PQerrorMessage(connection));
    ready = ready && settle(one, connection);
    if (ready && one->each) PQenterPipelineMode(connection);
    for (int i = 0; ready && i < 10; i++) ready = make(one, connection);
    pthread_barrier_wait(one->start);
    double until = yardstick_now() + one->until;
    while (ready) {
        double began = yardstick_now();
        if (began >= until || !make(one, connection)) break;
        if (one->jobs < one->most) one->milliseconds[one->jobs] = (yardstick_now() - began) * 1000;
        one->jobs++;
    }
    PQfinish(connection);
    return NULL;
}

yardstick_result yardstick_calls(
    const char *conninfo, const char *role, const char *const *claims, const char *const *values, const char *text, int each,
    int connections, double seconds, double *milliseconds, int64_t most) {
    yardstick_result result = {0};
    caller *callers = calloc((size_t)connections, sizeof *callers);
    pthread_t *threads = calloc((size_t)connections, sizeof *threads);
    if (!callers || !threads) {
        snprintf(result.failure, sizeof result.failure, "there is no memory");
        free(callers);
        free(threads);
        return result;
    }
    pthread_barrier_t start;
    pthread_barrier_init(&start, NULL, (unsigned)connections + 1);
    for (int i = 0; i < connections; i++) {
        callers[i] = (caller){
            .conninfo = conninfo, .role = role, .claims = claims[i], .value = values[i], .text = text, .each = each,
            .until = seconds, .start = &start, .most = most / connections, .milliseconds = milliseconds + most / connections * i};
        pthread_create(&threads[i], NULL, call_on, &callers[i]);
    }
    pthread_barrier_wait(&start);
    double began = yardstick_now();
    int64_t kept = 0;
    for (int i = 0; i < connections; i++) {
        pthread_join(threads[i], NULL);
        caller *one = &callers[i];
        int64_t had = one->jobs < one->most ? one->jobs : one->most;
        memmove(milliseconds + kept, one->milliseconds, (size_t)had * sizeof *milliseconds);
        kept += had;
        result.jobs += one->jobs;
        if (one->failure[0] && !result.failure[0]) memcpy(result.failure, one->failure, sizeof result.failure);
    }
    result.seconds = yardstick_now() - began;
    pthread_barrier_destroy(&start);
    free(callers);
    free(threads);
    return result;
}
