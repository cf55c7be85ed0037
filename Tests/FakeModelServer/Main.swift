import Fakes
import Glibc
import JSON

/// Faulty models as a process: prints its ports as a line of JSON, and runs until it is ended or its input ends. Takes what is wrong with them
/// as JSON.
@main struct Main {
    static func main() throws {
        let arguments = CommandLine.arguments.dropFirst()
        if arguments.first == "--help" {
            print("Usage: FakeModelServer ['{\"seed\": 1, \"faults\": 12, \"per_second\": 0}']")
            print("faults: of a hundred calls. Prints {\"port\": …, \"control\": …}.")
            print("Control: POST /down and /up (OpenAI's format answers 503), GET /figures.")
            return
        }
        var options = FaultyModels.Options()
        if let text = arguments.first {
            guard let given = try? JSONValue.read(Array(text.utf8)) else {
                print("error: this is no JSON: \(text)")
                exit(2)
            }
            options.seed = given["seed"]?.integer.map { UInt64($0) } ?? options.seed
            options.faults = given["faults"]?.integer ?? options.faults
            options.perSecond = given["per_second"]?.integer.map { Double($0) } ?? options.perSecond
        }
        let models = FaultyModels(options)
        let fake = try FakeModels { models.behaviour(for: $0) }
        let control = try RawServer { connection in
            while let head = connection.readHead() { answer(head, models, fake, on: connection) }
        }
        let line = "{\"port\":\(fake.port),\"control\":\(control.port)}\n"
        _ = write(1, line, line.utf8.count)  // unbuffered, so that the reader gets it at once
        var byte: UInt8 = 0
        while read(0, &byte, 1) > 0 {}
    }

    private static func answer(
        _ head: String, _ models: FaultyModels, _ fake: FakeModels, on connection: RawConnection
    ) {
        switch head.split(separator: " ").prefix(2).joined(separator: " ") {
        case "POST /down":
            models.down(true)
            connection.answer("{}")
        case "POST /up":
            models.down(false)
            connection.answer("{}")
        case "GET /figures": connection.answer(figures(models, fake).compact)
        default: connection.answer("", status: "404 Not Found")
        }
    }

    private static func figures(_ models: FaultyModels, _ fake: FakeModels) -> JSONValue {
        let counts = models.counts
        return [
            "calls": .int(counts.calls), "throttled": .int(counts.throttled), "while_down": .int(counts.whileDown),
            "faults": .object(
                counts.faults.sorted { $0.key < $1.key }.map { .init(key: $0.key, value: .int($0.value)) }),
            "told": .object(
                fake.toldByMark.map { mark, bill in
                    .init(key: mark, value: ["in": .int(bill.tokensIn), "out": .int(bill.tokensOut)])
                }),
        ]
    }
}
