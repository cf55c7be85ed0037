/// A complete worker in a program of your own: every room of `millrace worker`, rooms of yours, and your handlers.
///
/// Everything of `Millrace` comes along with this module, and what a room is made of.
@_exported public import Millrace
@_exported public import PageKit
@_exported public import RoomKit
@_exported public import Schema
