import Glibc
import TestSupport
import Testing

@testable import MillraceCommand

@Suite struct StatusTests {
    @Test func `conditions are read with their units`() throws {
        let read = try FailIf.read("oldest > 2m, failed>=5%,ready<=100 , workers<1")
        #expect(read.conditions.map(\.metric) == [.oldest, .failed, .ready, .workers])
        #expect(read.conditions.map(\.comparison) == [.above, .atLeast, .atMost, .below])
        #expect(read.conditions.map(\.value) == [120, 0.05, 100, 1])
        #expect(read.neededCap == 101)
    }

    @Test(arguments: [
        ("oldest>60s,foo>5%", 12), ("oldest>60", 10), ("oldest=60s", 7), ("failed>5s", 9), ("", 1), ("ready>", 7),
        ("ready>1,", 9), ("ready>1x", 8),
    ])
    func `a malformed condition is refused with its place`(text: String, place: Int) async {
        let outcome = await millrace("status", "--fail-if", text, "--database-url", "postgresql:///x")
        #expect(outcome.code == .misused)
        #expect(outcome.errors.contains("--fail-if is malformed at character \(place):"), "\(outcome.errors)")
    }

    @Test func `an empty database is OK`() async throws {
        try await withDatabase { database in
            let url = database.url
            let outcome = await millrace("status", "--database-url", url)
            #expect(outcome.code == .done && outcome.output.hasPrefix("OK"), "\(outcome.output)")
            #expect(!outcome.output.contains("unavailable"))
        }
    }

    @Test func `jobs without any worker are critical, and a paused queue's are degraded`() async throws {
        try await withDatabase { database in
            let url = database.url
            #expect(await millrace("enqueue", "a.b", "--queue", "mail", "--database-url", url).code == .done)
            let outcome = await millrace("status", "--json", "--database-url", url)
            #expect(outcome.code == .critical)
            let json = try JSONValue.read(outcome.output)
            #expect(json["version"]?.integer == 1 && json["verdict"]?.text == "critical")
            #expect(json["orphans"] == [["kind": "a.b", "waiting": .number("1")]])
            #expect(await millrace("queues", "pause", "mail", "--database-url", url).code == .done)
            let paused = await millrace("status", "--database-url", url)
            #expect(
                paused.code == .degraded && paused.output.hasPrefix("DEGRADED  mail has been paused for ")
                    && paused.output.contains(" s, and 1 job waits\n"),
                "\(paused.output)")
        }
    }

    @Test func `with conditions they alone decide`() async throws {
        try await withDatabase { database in
            let url = database.url
            #expect(await millrace("enqueue", "a.b", "--database-url", url).code == .done)
            #expect(await millrace("status", "--fail-if", "ready>5", "--database-url", url).code == .done)
            let hit = await millrace("status", "--fail-if", "ready>5,workers<1", "--database-url", url)
            #expect(hit.code == .critical && hit.output.hasPrefix("CRITICAL  workers<1: it is 0"), "\(hit.output)")
        }
    }

    @Test func `a section that fails says so and hides no other`() async throws {
        try await withDatabase { database in
            let url = database.url
            try await database.change("drop function millrace.pins()")
            let outcome = await millrace("status", "--database-url", url)
            #expect(outcome.output.contains("open transactions unavailable: "), "\(outcome.output)")
            #expect(outcome.output.contains(/partitions ahead: [34] days/))
        }
    }

    @Test func `what cannot be told is not OK`() async throws {
        try await withDatabase { database in
            try await database.change("drop view millrace.workers cascade")
            let outcome = await millrace("status", "--database-url", database.url)
            #expect(outcome.code == .degraded && outcome.output.hasPrefix("DEGRADED  the workers cannot be read"))
        }
    }

    @Test func `a living worker makes it OK, and its rates are shown`() async throws {
        try await withDatabase { database in
            let url = database.url
            try await withWorker(at: url) {
                _ = await millrace("enqueue", "practice.nothing", "--wait", "--timeout", "30s", "--database-url", url)
                let outcome = await millrace("status", "--database-url", url)
                #expect(outcome.code == .done && outcome.output.contains("working"), "\(outcome.output)")
                let list = await millrace("workers", "list", "--jsonl", "--database-url", url)
                let answer1 = try JSONValue.read(list.output)
                #expect(answer1["worker"]?.text == "test")
            }
        }
    }

    @Test func `watching goes on until the timeout`() async throws {
        try await withDatabase { database in
            // A second look comes a second after the first, however long the test takes.
            for timeout in ["1100ms", "10s", "2m"] {
                let outcome = await millrace(
                    "status", "--watch", "--jsonl", "--timeout", timeout, "--database-url", database.url)
                #expect(outcome.code == .done)
                if outcome.output.split(separator: "\n").count >= 2 { return }
            }
            Issue.record("it looked once")
        }
    }

    @Test func `watching ends when nobody reads any more`() async throws {
        try await withDatabase { database in
            let console = Console(
                output: Sink(isTerminal: false) { _ in Descriptor.sentence(EPIPE) }, errors: Capture().console.errors)
            let code = await Application.run(
                arguments: ["status", "--watch", "--timeout", "1m", "--database-url", database.url],
                surroundings: .fake(), console: console)
            #expect(code == .failed)
        }
    }

    @Test func `queues are paused, resumed, kept and drained`() async throws {
        try await withDatabase { database in
            let url = database.url
            #expect(await millrace("queues", "resume", "mail", "--database-url", url).code == .notFound)
            #expect(await millrace("queues", "drain", "mail", "--database-url", url).code == .notFound)
            #expect(
                await millrace("queues", "pause", "mail", "--create", "--database-url", url).output == "mail: paused\n")
            #expect(await millrace("queues", "pause", "mail", "--database-url", url).output == "mail: paused already\n")
            #expect(await millrace("queues", "wait", "mail", "--database-url", url).code == .done)
            #expect(await millrace("enqueue", "a.b", "--queue", "mail", "--database-url", url).code == .done)
            let late = await millrace("queues", "drain", "mail", "--timeout", "100ms", "--database-url", url)
            #expect(late.code == .timedOut && late.errors.contains("1 ready"))
            #expect(await millrace("queues", "retention", "mail", "long", "--database-url", url).code == .done)
            #expect(await millrace("queues", "retention", "mail", "ever", "--database-url", url).code == .misused)
            let list = await millrace("queues", "list", "--jsonl", "--database-url", url)
            let kept = try JSONValue.read(list.output)
            #expect(kept["retention"]?.text == "long")
        }
    }

    @Test func `the doctor finds what the test server lacks, and a test clock`() async throws {
        try await withDatabase { database in
            let url = database.url
            let outcome = await millrace("doctor", "--database-url", url)
            #expect(outcome.code == .critical && outcome.output.contains("problem  fsync: off"), "\(outcome.output)")
            #expect(outcome.output.contains("ok       notifications"))
            #expect(outcome.output.contains("ok       schema"))
            try await database.change("create table millrace.test_clock ()")
            let json = try JSONValue.read(await millrace("doctor", "--json", "--database-url", url).output)
            guard case .array(let checks)? = json["checks"] else { throw Failure("no checks") }
            #expect(checks.contains { $0["check"]?.text == "schema" && $0["result"]?.text == "problem" })
            #expect(await millrace("doctor", "--database-url", "postgresql://127.0.0.1:1/x").code == .unreachable)
        }
    }

    @Test func `the doctor of an empty database says to migrate`() async throws {
        try await withDatabase(.empty) { database in
            let outcome = await millrace("doctor", "--database-url", database.url)
            #expect(outcome.code == .critical && outcome.output.contains("millrace migrate"))
        }
    }
}
