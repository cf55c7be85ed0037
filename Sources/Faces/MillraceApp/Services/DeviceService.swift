public import Foundation

/// The person's devices that may hand in what was done offline.
public struct DeviceService: Sendable {
    private let doors: any DoorCaller

    /// On what calls functions.
    public init(_ doors: any DoorCaller) { self.doors = doors }

    /// The oldest first.
    public func list() async throws -> [SignedDevice] { try await doors.ask("sync_devices") }

    /// Ends the token of a device, such as one that was lost. False: it had none.
    public func end(_ device: String) async throws -> Bool {
        try await doors.act("sync_device_remove", ["device": .string(device)])
    }
}

/// A device with a token of its own.
public struct SignedDevice: Sendable, Hashable, Identifiable, Decodable {
    /// As the app has named this installation.
    public let device: String
    /// How the person knows it.
    public let name: String?
    /// When it got its token.
    public let madeAt: Date
    /// When it last used it.
    public let usedAt: Date?
    /// When the token ends, unless it is used.
    public let expiresAt: Date

    /// For doubles of your own.
    public init(device: String, name: String? = nil, madeAt: Date, usedAt: Date? = nil, expiresAt: Date) {
        (self.device, self.name, self.madeAt) = (device, name, madeAt)
        (self.usedAt, self.expiresAt) = (usedAt, expiresAt)
    }

    /// The same as the device.
    public var id: String { device }
}

/// Switches that the app's operators set, for all or for some.
public struct FlagService: Sendable {
    private let doors: any DoorCaller

    /// On what calls functions.
    public init(_ doors: any DoorCaller) { self.doors = doors }

    /// Whether a flag is on. The same key has the same answer while the flag is not changed; nil: the person who is signed in.
    public func isOn(_ flag: String, for key: String? = nil) async throws -> Bool {
        try await doors.ask("flag_on", ["name": .string(flag), "key": .string(key ?? doors.person)])
    }

    /// The gateway's clock.
    public func time() async throws -> Date { try await doors.ask("now") }
}
