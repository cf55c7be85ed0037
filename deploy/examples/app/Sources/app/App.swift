import Foundation
import MillraceApp

/// What an app does, as a command line: `app <url> <person> <directory> <step>…`
///
/// The token of the sign-in stands in the file APP_TOKEN_FILE; an app asks its sign-in's library for it. What is done while the gateway is
/// away waits in the directory.
@main struct App {
    static let steps =
        "scan FILE · register · contact NAME MAIL · arm · check-in · mood COLOR · sync · show · fill COUNT · share FILE…"

    let client: AppClient
    var arguments: [String]

    static func main() async {
        let arguments = CommandLine.arguments.dropFirst()
        guard arguments.count >= 4, let url = URL(string: arguments[1]) else {
            fail("usage: app <url> <person> <directory> <step>…\nsteps: \(steps)")
        }
        do {
            if arguments[4] == "share" {
                return try await share(Array(arguments.dropFirst(5)), arguments[2], URL(fileURLWithPath: arguments[3]))
            }
            let client = try await AppClient.live(
                AppConfiguration(url: url, token: token), person: arguments[2],
                offline: URL(fileURLWithPath: arguments[3]))
            var app = App(client: client, arguments: Array(arguments.dropFirst(3)))
            while !app.arguments.isEmpty { try await app.take(app.argument()) }
        } catch let error as AppError {
            fail("\(error.userMessage) (\(error))")
        } catch {
            fail("\(error)")
        }
    }

    /// Reads it each time: after a refusal, a new one may stand there.
    static let token: @Sendable (String?) async throws -> String = { _ in
        guard let path = ProcessInfo.processInfo.environment["APP_TOKEN_FILE"] else {
            throw AppError(.authentication, "APP_TOKEN_FILE is not set")
        }
        return try String(contentsOfFile: path, encoding: .utf8).trimmingCharacters(in: .whitespacesAndNewlines)
    }

    mutating func take(_ step: String) async throws {
        switch step {
        case "scan": try await scan(argument())
        case "register": try await client.queue?.register()
        case "contact":
            _ = try await client.emergency.setContact(EmergencyContact(argument(), mail: argument()))
        case "arm": tell("armed", try await client.checkIns.arm(WatchSettings(every: .seconds(3600))))
        case "check-in": tell("checked in", try await client.checkIns.checkIn())
        case "mood":
            guard let color = MoodColor(rawValue: argument()) else {
                Self.fail("a mood is one of \(MoodColor.allCases.map(\.rawValue).joined(separator: ", "))")
            }
            tell("mood logged", try await client.moods.log(color))
        case "sync": try await sync()
        case "show":
            for mood in try await client.moods.moods() { print("\(mood.day) \(mood.color.rawValue)") }
            let due = try await client.checkIns.state()?.checkInExpiration
            print("the next check-in is due at \(due.map { "\($0)" } ?? "no time")")
        case "fill": try await fill(Int(argument()) ?? 0)
        default: Self.fail("there is no step \(step)\nsteps: \(Self.steps)")
        }
    }

    /// Uploads a scan, and follows it to its text.
    private func scan(_ path: String) async throws {
        let file = try DocumentFile(contentsOf: URL(fileURLWithPath: path), mimeType: "image/png")
        let id = try await client.documents.upload(file, DocumentDetails(title: file.name))
        print("uploaded \(id.uuidString.lowercased())")
        var last: Document?
        for try await document in client.documents.streamProcessingStatus(id) {
            print("stage \(document.stage), \(document.pagesDone ?? 0) of \(document.pages ?? 0) pages")
            last = document
        }
        guard last?.status == .completed else { Self.fail("the document ended otherwise: \(last?.reason ?? "?")") }
        print("text: \(try await client.documents.text(id).trimmingCharacters(in: .whitespacesAndNewlines))")
        print("the searchable PDF has \(try await client.documents.contents(id, .pdf).count) bytes")
    }

    /// Tells the gateway what was done while it was away.
    private func sync() async throws {
        guard let queue = client.queue else { return }
        var outcomes = await queue.outcomes().makeAsyncIterator()
        let report = try await queue.drain()
        for _ in 0..<report.ended {
            guard let outcome = await outcomes.next() else { break }
            let why = outcome.error.map { ", \($0.userMessage)" } ?? ""
            print("\(outcome.operation.op): \(outcome.word.rawValue)\(why)")
        }
        print("\(report.ended) told, \(report.waiting) wait")
    }

    /// For a test that kills this program: what it says is on the disk.
    private func fill(_ count: Int) async throws {
        for number in 0..<count {
            let operation = QueuedOperation(
                "mood_log", ["person": .string(client.person), "color": "calm", "emoji": .string("\(number)")])
            try await client.queue?.add(operation)
            print(operation.id)
            fflush(nil)
        }
    }

    /// What an extension does while the app has the queue open: it hands files in, and says which are on the disk.
    private static func share(_ paths: [String], _ person: String, _ directory: URL) async throws {
        let inbox = try await OfflineInbox(directory: directory, person: person)
        for path in paths {
            let file = try DocumentFile(contentsOf: URL(fileURLWithPath: path), mimeType: "image/png")
            print(try await inbox.add(file, DocumentDetails(title: file.name)).uuidString)
            fflush(nil)
        }
    }

    private func tell<Value>(_ what: String, _ submission: Submission<Value>) {
        switch submission {
        case .done: print(what)
        case .queued: print("\(what), and will be told later")
        case .superseded: print("\(what), but something newer is in force")
        }
    }

    private mutating func argument() -> String {
        guard !arguments.isEmpty else { Self.fail("a step lacks its argument") }
        return arguments.removeFirst()
    }

    private static func fail(_ message: String) -> Never {
        FileHandle.standardError.write(Data("app: \(message)\n".utf8))
        exit(1)
    }
}
