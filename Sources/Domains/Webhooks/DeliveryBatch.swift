import CloudEvents
import Encodings
import Faults
import Signatures
import Traces

/// Deliveries that were claimed together for one target: a handshake, one event, or the events of one list.
struct DeliveryBatch: Sendable {
    struct Item: Sendable {
        var event: String
        var document: [UInt8]
        var attempts: Int
    }

    struct Letter: Sendable {
        var items: [Item]
        var message: EventMessage
        var id: String
        /// The places in traces that its events belong to.
        var traces: [TraceContext]
    }

    var token: Int64
    var webhook: String
    var url: String
    var mode: ContentMode
    var isHandshake: Bool
    var tries: Int
    var secrets: [String]
    var items: [Item]

    /// One batch for each event; one for all events of a target that takes lists.
    static func of(_ claimed: [WebhookStore.Claimed], token: Int64) -> [DeliveryBatch] {
        var batches: [DeliveryBatch] = []
        var places: [String: Int] = [:]
        for one in claimed {
            let item = one.event.map { Item(event: $0, document: one.document, attempts: one.attempts) }
            if let item, one.mode == ContentMode.batch.rawValue, let index = places[one.webhook] {
                batches[index].items.append(item)
                continue
            }
            if one.mode == ContentMode.batch.rawValue, !one.isHandshake { places[one.webhook] = batches.count }
            batches.append(
                DeliveryBatch(
                    token: token, webhook: one.webhook, url: one.url,
                    mode: ContentMode(rawValue: one.mode) ?? .binary, isHandshake: one.isHandshake, tries: one.tries,
                    secrets: one.secrets, items: item.map { [$0] } ?? []))
        }
        return batches
    }

    /// What can be sent, and what cannot.
    var messages: (ready: [Letter], faulty: [(Item, Fault)]) {
        var good: [(item: Item, event: CloudEvent)] = []
        var faulty: [(Item, Fault)] = []
        for item in items {
            do throws(CloudEventError) {
                let event = try CloudEvent(json: item.document)
                if EventMessage(event, mode).size > CloudEvent.largest || event.json.count > CloudEvent.largest {
                    faulty.append((item, Fault(.tooLarge, "the event takes more than 64 KiB")))
                } else {
                    good.append((item, event))
                }
            } catch {
                faulty.append((item, Fault(.invalid, "it is not an event: \(error)")))
            }
        }
        guard mode == .batch else {
            return (
                good.map { one in
                    Letter(
                        items: [one.item], message: EventMessage(one.event, mode), id: one.item.event,
                        traces: [Self.trace(of: one.event)].compactMap { $0 })
                }, faulty
            )
        }
        guard !good.isEmpty else { return ([], faulty) }
        let letter = Letter(
            items: good.map(\.item), message: EventMessage(batch: good.map(\.event)),
            id: Self.batchID(good.map(\.item.event)), traces: good.compactMap { Self.trace(of: $0.event) })
        return ([letter], faulty)
    }

    /// As the extension of CloudEvents for distributed tracing has it.
    private static func trace(of event: CloudEvent) -> TraceContext? {
        event.extensions["traceparent"].flatMap {
            TraceContext(traceparent: $0.text, tracestate: event.extensions["tracestate"]?.text)
        }
    }

    /// The same id for the same events, so that a receiver recognises a batch that comes twice.
    static func batchID(_ events: [String]) -> String {
        let hash = HMAC.sha256(Array(events.joined(separator: ",").utf8), key: Array("batch".utf8))
        return "batch_" + Hexadecimal.text(hash.prefix(16))
    }
}
