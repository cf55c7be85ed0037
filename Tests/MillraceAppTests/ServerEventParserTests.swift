import Foundation
import TestSupport
import Testing

@testable import MillraceApp

@Suite struct ServerEventParserTests {
    private static let stream =
        "\u{FEFF}retry: 2000\nid: 7\nevent: ready\ndata: {\"position\": 7}\n\n: alive\nid: 8\r\nevent: change\r\n"
        + "data: one\r\ndata:two\r\ndata\r\n\r\n: alive\n\nid: 9\rdata: ü€😀\r\revent: lost\nid: 10\n\ndata: after\n\n"

    private static let events = [
        ServerEvent(id: "7", name: "ready", data: "{\"position\": 7}"),
        ServerEvent(id: "8", name: "change", data: "one\ntwo\n"),
        ServerEvent(id: "9", name: "message", data: "ü€😀"),
        ServerEvent(id: nil, name: "message", data: "after"),
    ]

    @Test func `events are the same wherever the bytes are cut`() throws {
        let bytes = Data(Self.stream.utf8)
        for cut in 0...bytes.count {
            var parser = ServerEventParser()
            let read = try parser.read(bytes.prefix(cut)) + parser.read(bytes.dropFirst(cut))
            #expect(read == Self.events, "cut at \(cut)")
            #expect(parser.retry == .milliseconds(2000))
        }
        var parser = ServerEventParser()
        var read: [ServerEvent] = []
        for byte in bytes { read += try parser.read(Data([byte])) }
        #expect(read == Self.events)
    }

    @Test func `an event without its empty line is not an event`() throws {
        var parser = ServerEventParser()
        #expect(try parser.read(Data("id: 1\ndata: half\n".utf8)) == [])
    }

    @Test func `a line without an end does not fill the memory`() throws {
        var parser = ServerEventParser()
        let piece = Data(repeating: 0x61, count: ServerEventParser.longestEvent)
        #expect(try parser.read(piece) == [])
        #expect(throws: AppError.self) { _ = try parser.read(Data("b".utf8)) }
    }

    @Test func `an event of endless lines does not fill the memory`() throws {
        var parser = ServerEventParser()
        let line = Data("data: \(String(repeating: "a", count: 994))\n".utf8)
        #expect(throws: AppError.self) { for _ in 0..<1100 { _ = try parser.read(line) } }
        // What has ended does not count.
        var other = ServerEventParser()
        for _ in 0..<1100 { #expect(try other.read(line + Data("\n".utf8)).count == 1) }
    }

    @Test func `changes, resets and ends are read as the gateway writes them`() throws {
        let change = ServerEvent(
            id: "12", name: "change",
            data: """
                {"seq":12,"at":"2026-11-27T10:23:23.123456+00:00","topic":"documents","ref":"a","change":"updated",\
                "data":{"pages_done":2,"lesson_id":"l"}}
                """)
        let read = try FeedReader.read(change)
        guard case .change(let found) = read else {
            Issue.record("not a change: \(String(describing: read))")
            return
        }
        #expect(found.seq == 12 && found.topic == "documents" && found.change == "updated")
        #expect(found.data?["pages_done"]?.int == 2 && found.data?["lesson_id"]?.string == "l")
        #expect(
            try FeedReader.read(ServerEvent(name: "reset", data: "{\"position\":3}")) == .reset(position: 3))
        #expect(try FeedReader.read(ServerEvent(name: "of a later version", data: "?")) == nil)
    }
}
