/// A complete worker in a program of your own: every room of `millrace worker`, and your handlers.
///
/// Everything of `Millrace` comes along with this module.
@_exported public import Millrace
