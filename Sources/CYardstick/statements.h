#ifndef MILLRACE_YARDSTICK_STATEMENTS_H
#define MILLRACE_YARDSTICK_STATEMENTS_H

/// (session, number, queue, lane, above, limit): takes jobs out of line under one lease.
extern const char *const yardstick_claim;
/// (session, number, ids, kind, queue): ends them.
extern const char *const yardstick_finish;

#endif
