#ifndef MILLRACE_YARDSTICK_STATEMENTS_H
#define MILLRACE_YARDSTICK_STATEMENTS_H

#include <libpq-fe.h>

/// (session, number, queue, lane, above, limit): takes jobs out of line under one lease.
extern const char *const yardstick_claim;
/// (session, number, ids, kind, queue): ends them.
extern const char *const yardstick_finish;

/// The monotonic clock, in seconds.
double yardstick_now(void);

/// Connects, with the search_path that our own connections have. Look at its status: a failure is told there.
PGconn *yardstick_open(const char *conninfo);

/// Connects, with that path and the plans that the queue's functions force for themselves.
PGconn *yardstick_connect(const char *conninfo);

#endif
