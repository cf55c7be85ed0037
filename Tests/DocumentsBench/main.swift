import Documents
import FoundationEssentials
import Glibc
import Pages
import Sandbox

// documents-bench <jobs> <models> <file> <output.pdf> [<choices> [<languages>]]: one document through all stages, what it took as JSON, its
// text and the structure of its pages beside the PDF. Languages are models with + between them.

func complain(_ text: String) -> Never {
    let bytes = Array("error: \(text)\n".utf8)
    write(2, bytes, bytes.count)
    exit(1)
}

let words = CommandLine.arguments
guard (5...7).contains(words.count), let jobs = Int(words[1]), (1...64).contains(jobs) else {
    complain("usage: documents-bench <jobs> <models> <file> <output.pdf> [<choices as JSON> [<languages>]]")
}
var choices = DocumentChoices()
if words.count > 5 {
    guard let given = try? JSONDecoder().decode(DocumentChoices.self, from: Data(words[5].utf8)) else {
        complain("\(words[5]) are no choices")
    }
    choices = given
}
var workshop = DocumentPrograms(environment: [:], beside: words[0])
workshop.models = words[2]
if words.count == 7 {
    workshop.languages = words[6].split(separator: "+").map(String.init)
} else if words.count == 6, choices.languages == .found {
    workshop.languages = ["auto"]
}
let file = open(words[3], O_RDONLY | O_CLOEXEC)
guard file >= 0 else { complain("\(words[3]) can not be opened") }
let output = open(words[4], O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0o644)
guard output >= 0 else { complain("\(words[4]) can not be written") }

struct Result: Encodable {
    var pages: Int
    var read: Int
    var failed: [String: String]
    var cpu: [String: Double]
    var total: Double
    var parent: Double
    var peak: [String: Int]
    var first: Double?
    var wall: Double
    var prepared: [String]
    var about: CopyFacts?
}

func seconds(_ duration: Duration) -> Double {
    Double(duration.components.seconds) + Double(duration.components.attoseconds) / 1e18
}

final class First: @unchecked Sendable {  // proof: written by the one task that reads, and read when that has ended
    var at: ContinuousClock.Instant?
}

let first = First()
let began = ContinuousClock.now
let engines = (0..<jobs).map { _ in ChildPageReader(workshop) }
do {
    var reading = try await workshop.read(file, engines: engines) { _, text in
        if text != nil, first.at == nil { first.at = .now }
    }
    for engine in engines {
        let spent = await engine.end()
        reading.usage[.ocr] = Worked((), reading.usage[.ocr] ?? Usage()).adding(spent)
    }
    let assembled = try await workshop.assemble(
        file, reading.inspection, texts: reading.texts, into: output, choices: choices)
    reading.usage[.assemble] = assembled.usage
    let text = reading.texts.sorted { $0.key < $1.key }.map(\.value.text).joined(separator: "\u{c}")
    try Data(text.utf8).write(to: URL(filePath: words[4] + ".txt"))
    let structures = reading.texts.sorted { $0.key < $1.key }.map { PageStructure(of: $0.value) }
    try JSONEncoder().encode(structures).write(to: URL(filePath: words[4] + ".structure.json"))
    try JSONEncoder().encode(reading.texts.sorted { $0.key < $1.key }.map(\.value)).write(
        to: URL(filePath: words[4] + ".pages.json"))
    var own = rusage()
    getrusage(__rusage_who_t(RUSAGE_SELF.rawValue), &own)
    let parent =
        Double(own.ru_utime.tv_sec + own.ru_stime.tv_sec) + Double(own.ru_utime.tv_usec + own.ru_stime.tv_usec) / 1e6
    let cpu = Dictionary(uniqueKeysWithValues: reading.usage.map { ($0.key.rawValue, seconds($0.value.cpu)) })
    let result = Result(
        pages: reading.inspection.pages.count, read: reading.texts.values.filter { $0.origin == .read }.count,
        failed: Dictionary(
            uniqueKeysWithValues: reading.failures.map { (String($0.key), $0.value.reason.rawValue) }),
        cpu: cpu, total: cpu.values.reduce(0, +) + parent, parent: parent,
        peak: Dictionary(uniqueKeysWithValues: reading.usage.map { ($0.key.rawValue, $0.value.peak >> 20) }),
        first: first.at.map { seconds($0 - began) }, wall: seconds(.now - began),
        prepared: reading.texts.sorted { $0.key < $1.key }.map(\.value.preparation),
        about: assembled.value.facts)
    print(String(decoding: try JSONEncoder().encode(result), as: UTF8.self))
} catch {
    for engine in engines { _ = await engine.end() }
    complain("\(error)")
}
