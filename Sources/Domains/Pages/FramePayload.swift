import FoundationEssentials

/// The payload of a frame that carries more than JSON: a length, that many bytes of JSON, then raw bytes.
package enum FramePayload {
    package static func make(_ head: some Encodable, _ body: some Collection<UInt8> = EmptyCollection())
        throws(DocumentRefusal)
        -> [UInt8]
    {
        let json: Data
        do {
            json = try JSONEncoder().encode(head)
        } catch {
            throw DocumentRefusal(.internal, "a packet's head could not be written")
        }
        var bytes: [UInt8] = []
        bytes.reserveCapacity(4 + json.count + body.count)
        for shift in stride(from: 0, to: 32, by: 8) {
            bytes.append(UInt8(truncatingIfNeeded: json.count >> shift))
        }
        bytes.append(contentsOf: json)
        bytes.append(contentsOf: body)
        return bytes
    }

    package static func open<Head: Decodable>(
        _ bytes: [UInt8], as head: Head.Type = Head.self
    ) throws(DocumentRefusal) -> (head: Head, body: ArraySlice<UInt8>) {
        guard bytes.count >= 4 else { throw DocumentRefusal(.internal, "a packet without a head") }
        let length = bytes[..<4].reversed().reduce(0) { $0 << 8 | Int($1) }
        guard length <= bytes.count - 4 else { throw DocumentRefusal(.internal, "a packet shorter than its head") }
        do {
            return (try JSONDecoder().decode(head, from: Data(bytes[4..<4 + length])), bytes[(4 + length)...])
        } catch {
            throw DocumentRefusal(.internal, "a packet whose head is not what was expected")
        }
    }
}
