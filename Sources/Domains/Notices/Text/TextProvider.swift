import Encodings
import Faults
import FoundationEssentials
import JSON
package import Supervision
package import Transfers

/// Any HTTP service that sends texts or reads them out on the telephone: an address, headers, and a body with places for what is told.
package struct TextProvider: NoticeProvider {
    package struct Configuration: Sendable {
        /// May name {{channel}}, which is sms or voice.
        package var url: String
        package var headers: [(name: String, value: String)] = []
        /// {{to}}, {{text}}, {{id}} and {{channel}} stand for what their names say, escaped as the Content-Type demands.
        package var body = #"{"to":"{{to}}","text":"{{text}}","id":"{{id}}","channel":"{{channel}}"}"#
        package var timeout = Duration.seconds(20)

        package init(url: String) { self.url = url }
    }

    package let name: String
    private let configuration: Configuration
    private let client: HTTPClient
    private let isForm: Bool

    /// - Parameter channel: sms or voice.
    package init(_ channel: Sending.Channel, _ configuration: Configuration, client: HTTPClient) {
        name = channel.rawValue
        self.configuration = configuration
        self.client = client
        let type = configuration.headers.first { $0.name.lowercased() == "content-type" }?.value.lowercased() ?? ""
        isForm = type.hasPrefix("application/x-www-form-urlencoded")
    }

    package func send(_ sending: Sending, _ words: NoticeWords, call: Call) async -> NoticeOutcome {
        var request = HTTPRequest(
            "POST", configuration.url.replacing("{{channel}}", with: name), body: .bytes(body(sending, words)))
        for (name, value) in configuration.headers { request.headers.add(name, value) }
        if !request.headers.contains("Content-Type") { request.headers.add("Content-Type", "application/json") }
        if !request.headers.contains("Idempotency-Key") { request.headers.add("Idempotency-Key", sending.id) }
        // Not every service heeds the key: a dead connection leaves the outcome open, and the lane decides.
        request.isRepeatable = false
        request.limits.total = configuration.timeout
        request.limits.bodyBytes = 256 << 10
        do throws(TransferError) {
            let response = try await client.send(request)
            call.heard(RateNotes(headers: response.headers.pairs, now: Date().timeIntervalSince1970))
            return Self.judge(response, isAlarm: sending.isAlarm)
        } catch {
            return .broken(error)
        }
    }

    func body(_ sending: Sending, _ words: NoticeWords) -> [UInt8] {
        var out = ""
        var rest = configuration.body[...]
        while let open = rest.firstRange(of: "{{") {
            out += rest[..<open.lowerBound]
            rest = rest[open.upperBound...]
            guard let close = rest.firstRange(of: "}}") else {
                out += "{{"
                break
            }
            switch rest[..<close.lowerBound] {
            case "to": add(sending.address, to: &out)
            case "text": add(words.line, to: &out)
            case "id": add(sending.id, to: &out)
            case "channel": add(name, to: &out)
            default: out += "{{\(rest[..<close.lowerBound])}}"
            }
            rest = rest[close.upperBound...]
        }
        return Array((out + rest).utf8)
    }

    private func add(_ text: String, to out: inout String) {
        out += isForm ? PercentEncoding.encoded(text) : JSONText.escaped(text)
    }

    static func judge(_ response: HTTPResponse, isAlarm: Bool) -> NoticeOutcome {
        struct Answer: Decodable {
            var id: String?
            var sid: String?
            var message_id: String?
        }
        let code = "\(response.status)"
        let wait = RateNotes(headers: response.headers.pairs, now: Date().timeIntervalSince1970).retryAfter
        switch response.status {
        case 200...299:
            let answer = try? JSONDecoder().decode(Answer.self, from: Data(response.body))
            return .accepted(id: answer?.sid ?? answer?.message_id ?? answer?.id)
        case 500, 502, 504:
            return .unknown(Fault(.unknown, code: code, "the service failed while processing this", wait: wait))
        case 429: return .failed(Fault(.throttled, code: code, "faster than the service allows", wait: wait))
        case 401, 403:
            return .failed(Fault(.authentication, code: code, "the service does not accept our headers"))
        default:
            return .said(
                Fault(
                    ErrorClass(http: response.status) ?? .invalid, code: code, "the service does not accept this",
                    wait: wait),
                isAlarm: isAlarm)
        }
    }
}

extension TextProvider.Configuration: CustomStringConvertible, CustomReflectable {
    package var description: String { "a service for texts" }
    package var customMirror: Swift.Mirror { Swift.Mirror(self, children: []) }
}
