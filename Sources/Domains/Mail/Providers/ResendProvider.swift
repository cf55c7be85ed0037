package import Faults
package import FoundationEssentials
package import Supervision
package import Transfers

/// Resend's HTTP interface: single messages, and batches of up to a hundred. Each request has an idempotency key.
package struct ResendProvider: MailProvider {
    package struct Configuration: Sendable {
        package var key: String
        package var base = "https://api.resend.com"
        /// For the answer; a large message gets as much time more as it needs at a megabyte a second.
        package var timeout = Duration.seconds(30)

        package init(key: String) { self.key = key }
    }

    package let name = "resend"
    package let capabilities: Capabilities
    private let configuration: Configuration
    private let client: HTTPClient
    private let blobs: BlobSource
    private let now: @Sendable () -> Date

    package init(
        _ configuration: Configuration, client: HTTPClient, blobs: BlobSource,
        now: @escaping @Sendable () -> Date = { Date() }
    ) {
        self.configuration = configuration
        self.client = client
        self.blobs = blobs
        self.now = now
        var capabilities = Capabilities()
        capabilities.batch = 100
        capabilities.batchesAttachments = false
        // Resend keeps keys for 24 hours; the last hour is a margin for clocks and for requests on their way.
        capabilities.keyHolds = .seconds(23 * 3600)
        capabilities.answersLater = true
        self.capabilities = capabilities
    }

    package func objection(to letter: Letter) -> String? {
        // A batch is all or nothing: one letter's mistake must be found here, before it costs the other ninety-nine.
        do { try letter.check() } catch { return error.description }
        if letter.to.isEmpty { return "Resend requires at least one recipient in To, besides copies" }
        return nil
    }

    package func send(_ letters: [Letter], key: String, call: Call) async -> [SendOutcome] {
        @Sendable func all(_ handover: SendOutcome) -> [SendOutcome] { letters.map { _ in handover } }
        guard (1...capabilities.batch).contains(letters.count),
            letters.count == 1 || letters.allSatisfy(\.attachments.isEmpty)
        else { return all(.refused(Fault(.internal, "a batch has 1 to 100 letters, and no attachments"))) }
        guard (1...256).contains(key.utf8.count), key.utf8.allSatisfy({ (0x21...0x7e).contains($0) }) else {
            return all(.refused(Fault(.internal, "an idempotency key has 1 to 256 visible characters")))
        }
        let wire = Self.body(letters)
        var request = request("POST", letters.count == 1 ? "/emails" : "/emails/batch")
        request.headers.add("Content-Type", "application/json")
        request.headers.add("Idempotency-Key", key)
        request.limits.total += .milliseconds(wire.length / 1000)
        if let whole = wire.whole {
            request.body = .bytes(whole)
            do throws(TransferError) {
                return judge(try await client.send(request), letters.count, call)
            } catch {
                return all(.failed(error))
            }
        }
        let (length, first) = (wire.length, request)
        return await wire.streamed(from: blobs) { handing in
            var request = first
            request.body = .stream(length: length, next: { try await handing.next() })
            do throws(TransferError) {
                return judge(try await client.send(request), letters.count, call)
            } catch {
                // A request whose body ended early is incomplete, so it cannot have had an effect.
                if let failure = handing.failure {
                    return all(.refused(Fault(.internal, "an attachment could not be read: \(failure)")))
                }
                return all(.failed(error))
            }
        }
    }

    package func status(of id: String, call: Call) async throws(Fault) -> String? {
        guard (1...64).contains(id.utf8.count), id.utf8.allSatisfy({ isLetterOrDigit($0) || $0 == UInt8(ascii: "-") })
        else { throw Fault(.invalid, "this is not one of Resend's ids") }
        let response: HTTPResponse
        do throws(TransferError) {
            response = try await client.send(request("GET", "/emails/\(id)"))
        } catch {
            throw Fault(transfer: error)
        }
        hear(response, call)
        struct Email: Decodable { var last_event: String? }
        switch response.status {
        case 200:
            guard let email = try? JSONDecoder().decode(Email.self, from: Data(response.body)) else {
                throw Fault(.transient, code: "200", "Resend's answer cannot be read")
            }
            return email.last_event
        case 404: return nil
        default: throw ResendAnswer(response).fault(now: now())
        }
    }

    private func request(_ method: String, _ path: String) -> HTTPRequest {
        var base = configuration.base
        while base.hasSuffix("/") { base.removeLast() }
        var request = HTTPRequest(method, base + path)
        request.headers.add("Authorization", "Bearer \(configuration.key)")
        request.headers.add("Accept", "application/json")
        request.limits.total = configuration.timeout
        return request
    }

    private func judge(_ response: HTTPResponse, _ count: Int, _ call: Call) -> [SendOutcome] {
        hear(response, call)
        return ResendAnswer(response).handovers(count, now: now())
    }

    private func hear(_ response: HTTPResponse, _ call: Call) {
        call.heard(RateNotes(headers: response.headers.pairs, now: now().timeIntervalSince1970))
        // The headers tell what was used, not what is allowed.
        if let used = response.headers["x-resend-daily-quota"].flatMap({ Int64($0) }) {
            call.heardQuota(used: used, limit: nil, resets: ResendAnswer.untilMidnight(now()))
        } else if let used = response.headers["x-resend-monthly-quota"].flatMap({ Int64($0) }) {
            call.heardQuota(used: used, limit: nil, resets: nil)
        }
    }
}

extension ResendProvider.Configuration: CustomStringConvertible, CustomReflectable {
    package var description: String { "Resend" }
    package var customMirror: Swift.Mirror { Swift.Mirror(self, children: []) }
}
