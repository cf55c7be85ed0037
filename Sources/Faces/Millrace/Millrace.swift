/// Millrace: background jobs for Swift on Postgres.
///
/// Everything of ``Job``, ``Verdict`` and ``Context`` comes along with this module.
@_exported public import MillraceJobs
