import Encodings
package import Faults
import FoundationEssentials
package import Supervision
package import Transfers

/// Supabase's own mails. It can only send a user's reset or verification mail, with its own words, link and token. Each call voids the
/// previous token, so it is never called when an earlier attempt may have worked, and never repeats a call by itself.
package struct SupabaseProvider: MailProvider {
    package struct Configuration: Sendable {
        package var url: String
        /// The anonymous key, or the service role's key, which needs no captcha.
        package var key: String
        package var redirectTo: String?
        package var timeout = Duration.seconds(30)

        package init(url: String, key: String) {
            self.url = url
            self.key = key
        }
    }

    package let name = "supabase"
    package let capabilities: Capabilities
    private let configuration: Configuration
    private let client: HTTPClient

    package init(_ configuration: Configuration, client: HTTPClient) {
        self.configuration = configuration
        self.client = client
        var capabilities = Capabilities()
        capabilities.attachments = false
        capabilities.copies = false
        capabilities.mayFollowUnknown = false
        self.capabilities = capabilities
    }

    package func objection(to letter: Letter) -> String? {
        guard letter.purpose != nil else {
            return "Supabase sends password resets and account verifications only, and none whose token is its own"
        }
        guard letter.recipients.count == 1, letter.to.count == 1 else {
            return "Supabase sends to one recipient, without copies"
        }
        guard letter.attachments.isEmpty else { return "Supabase sends no attachments" }
        return nil
    }

    package func send(_ letters: [Letter], key: String, call: Call) async -> [SendOutcome] {
        guard letters.count == 1, let purpose = letters[0].purpose, let to = letters[0].to.first else {
            return letters.map { _ in .refused(Fault(.unsupported, "Supabase cannot send this")) }
        }
        var json = OrderedJSONWriter()
        let path: String
        switch purpose {
        case .passwordReset:
            path = "/auth/v1/recover"
            json.raw("{\"email\":")
        case .accountVerification:
            // Not /otp: that would create a user for an unknown address.
            path = "/auth/v1/resend"
            json.raw("{\"type\":\"signup\",\"email\":")
        }
        json.string(to.address)
        json.raw("}")
        var base = configuration.url
        while base.hasSuffix("/") { base.removeLast() }
        let query = configuration.redirectTo.map { "?redirect_to=\(PercentEncoding.encoded($0))" } ?? ""
        var request = HTTPRequest("POST", base + path + query, body: .bytes(json.bytes))
        request.headers.add("apikey", configuration.key)
        request.headers.add("Authorization", "Bearer \(configuration.key)")
        request.headers.add("Content-Type", "application/json")
        request.headers.add("X-Supabase-Api-Version", "2024-01-01")
        request.limits.total = configuration.timeout
        // Otherwise the request would be sent a second time when a kept connection turns out to be dead.
        request.isRepeatable = false
        request.wantsFreshConnection = true
        do throws(TransferError) {
            return [Self.judge(try await client.send(request))]
        } catch {
            return [.failed(error)]
        }
    }

    package func status(of id: String, call: Call) async throws(Fault) -> String? { nil }

    private static func judge(_ response: HTTPResponse) -> SendOutcome {
        struct Problem: Decodable {
            var code: Code?
            var error_code: String?

            /// A name; in older versions the status again.
            enum Code: Decodable {
                case name(String), number

                init(from decoder: any Decoder) throws {
                    let value = try decoder.singleValueContainer()
                    self = (try? value.decode(String.self)).map { .name($0) } ?? .number
                }
            }
        }
        let problem = try? JSONDecoder().decode(Problem.self, from: Data(response.body))
        var name = problem?.error_code
        if case .name(let text) = problem?.code { name = text }
        return judge(status: response.status, name: name)
    }

    static func judge(status: Int, name: String?) -> SendOutcome {
        let name = name.flatMap { name in
            name.utf8.count <= 64 && name.utf8.allSatisfy { isLetterOrDigit($0) || $0 == UInt8(ascii: "_") }
                ? name : nil
        }
        let code = name.map { "\(status) \($0)" } ?? "\(status)"
        switch (status, name) {
        // Unknown addresses get this answer, too: Supabase says yes to everybody.
        case (200...299, _): return .accepted(id: nil)
        case (_, "over_email_send_rate_limit"):
            return .throttled(Fault(.throttled, code: code, "Supabase sends no more mails for now", wait: .seconds(60)))
        case (429, _):
            return .throttled(Fault(.throttled, code: code, "faster than Supabase allows", wait: .seconds(60)))
        case (_, "email_address_not_authorized"):
            return .refused(Fault(.authentication, code: code, "this project's mail server sends to its own team only"))
        case (_, "captcha_failed"), (_, "email_provider_disabled"), (_, "otp_disabled"), (_, "signup_disabled"):
            return .refused(Fault(.authentication, code: code, "this project does not send mails on request"))
        case (_, "email_address_invalid"), (_, "validation_failed"):
            return .refused(Fault(.invalid, code: code, "Supabase does not accept this address"))
        case (_, "user_not_found"): return .refused(Fault(.notFound, code: code, "Supabase has no such user"))
        case (401, _), (403, _):
            return .refused(
                Fault(.authentication, code: code, "Supabase does not accept the key: check SUPABASE_URL and its keys"))
        case (404, _), (405, _), (300...399, _):
            return .refused(Fault(.unavailable, code: code, "there is no Supabase at this address: check SUPABASE_URL"))
        case (408, _), (500...599, _):
            return .unknown(Fault(.unknown, code: code, "Supabase failed while processing this"))
        default: return .refused(Fault(.invalid, code: code, "Supabase does not accept this request"))
        }
    }
}

extension SupabaseProvider.Configuration: CustomStringConvertible, CustomReflectable {
    package var description: String { "Supabase" }
    package var customMirror: Swift.Mirror { Swift.Mirror(self, children: []) }
}
