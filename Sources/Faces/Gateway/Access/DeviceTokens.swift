import Encodings
import FoundationEssentials
import JSON
import Listeners
import Supervision
import Synchronization

/// Tokens of devices, which live longer than web tokens and are good for the offline intake alone. The database knows them; what it said
/// counts for some seconds.
final class DeviceTokens: Sendable {
    private let supervisor: Supervisor
    private let now: @Sendable () -> Date
    private let claims: GatewayAccess.DeviceClaims
    private let known = Mutex(RecentCallers(capacity: 10_000))

    static let patience = 10.0
    private static let longest = 256

    init(
        supervisor: Supervisor, now: @escaping @Sendable () -> Date, claims: @escaping GatewayAccess.DeviceClaims
    ) {
        self.supervisor = supervisor
        self.now = now
        self.claims = claims
    }

    func caller(of token: String) async throws -> GatewayCaller {
        guard token.utf8.count <= Self.longest, token.utf8.allSatisfy({ (0x21...0x7e).contains($0) }) else {
            throw GatewayAccess.refusal("the device token is refused: it is not one of ours")
        }
        let digest = RecentCallers.digest(token)
        if let caller = known.withLock({ $0.caller(of: digest, at: now()) }) { return caller }
        let claims = claims
        let found: [UInt8]? = try await supervisor.read("gateway-device:\(Hexadecimal.text(digest))") {
            try await claims(token)
        }
        guard let found else {
            throw GatewayAccess.refusal(
                "the device token is refused: it is unknown, was removed, or has ended",
                hint: "Sign in, and add the device again.")
        }
        guard let value = try? JSONValue.read(found), let subject = value["sub"]?.text, !subject.isEmpty else {
            throw ErrorAnswer(.internal, "the database names no person for a device token")
        }
        // Streams are not for devices, so this is only how long the answer counts.
        let caller = GatewayCaller(
            subject: subject, claims: found, expires: now().addingTimeInterval(Self.patience),
            device: value["device"]?.text ?? Hexadecimal.text(Array(digest.prefix(8))))
        known.withLock { $0.keep(caller, of: digest) }
        return caller
    }
}
