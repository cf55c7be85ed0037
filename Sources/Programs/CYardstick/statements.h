#ifndef MILLRACE_YARDSTICK_STATEMENTS_H
#define MILLRACE_YARDSTICK_STATEMENTS_H

#include <libpq-fe.h>

/// (session, number, queue, lane, above, limit): takes jobs out of line under one lease.
extern const char *const yardstick_claim;
/// (session, number, ids, kind, queue): ends them.
extern const char *const yardstick_finish;

/// The monotonic clock, in seconds.
double yardstick_now(void);

/// Connects, with the plans that the queue's functions force for themselves. Look at its status: a failure is told there.
PGconn *yardstick_connect(const char *conninfo);

#endif
