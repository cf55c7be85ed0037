/// Where blobs lie; what a room is, the kit of the command line with the settings, and JSON: nearly everything here uses them.
@_exported public import BlobKit
@_exported public import RoomKit
@_exported public import StatusKit
