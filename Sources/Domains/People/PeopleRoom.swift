import BlobKit
import Blobs
import CommandKit
import Glibc
import JSON
import Postgres
package import RoomKit
import RoomSchemas
import SettingsKit

extension Room {
    package static let people = Room(
        RoomSchemas.people, nouns: ["people": "Export everything stored about a person"], verbs: [.peopleExport])
}

extension Command {
    static let peopleExport = Command(
        ["people", "export"],
        summary: "Print everything stored about a person, one line of JSON per row",
        discussion: """
            Every room exports what it stores, including rooms from other packages. Secrets, hashes and internal \
            data are left out. With --files the files that rows name are written to a folder, each under its hash. The audit says who exported whom.
            """,
        arguments: [Argument("person", .one, help: "the person's id")],
        flags: [
            .single(
                "files", "FOLDER", .path, environment: .none,
                help: "Write the files into this folder, which is created."),
            Setting.blobs.flag,
        ],
        examples: [
            Example("millrace people export anna", "for a look"),
            Example("millrace people export anna --files anna-files --jsonl > anna.jsonl", "to hand over"),
        ]
    ) { invocation in
        let person = invocation.parsed.string("person") ?? ""
        let gathers = invocation.console.format == .json
        let (rows, files) = try await invocation.withSchema { connection in
            var (rows, files): ([JSONValue], [BlobID]) = ([], [])
            var place: String?
            while true {
                let page = try await PersonExport.page(of: person, after: place, on: connection)
                guard let last = page.last else { break }
                place = last.place
                for row in page {
                    files += row.files.map(\.blob)
                    if gathers {
                        rows.append(row.json)
                    } else {
                        invocation.console.output.write(row.json.compact + "\n")
                    }
                }
            }
            return (rows, files)
        }
        if gathers { invocation.console.list("rows", rows, table: Table([])) }
        if let folder = invocation.parsed.string("files") { try await invocation.write(files, into: folder) }
        return .done
    }
}

extension Invocation {
    /// What is there already is the same content, for its name is its hash.
    fileprivate func write(_ files: [BlobID], into folder: String) async throws {
        guard mkdir(folder, 0o700) == 0 || errno == EEXIST else {
            throw Failure("\(Secrets.quoted(folder)) cannot be made: \(Descriptor.sentence(errno))")
        }
        let pool = Pool(try connectionOptions(), size: 2)
        let store = settings.blobStore(pool: pool)
        do {
            for id in Set(files) where access("\(folder)/\(id)", F_OK) != 0 {
                guard try await store.head(id) != nil else {
                    console.warning("the file \(id) is gone")
                    continue
                }
                try await NewFile.write(at: "\(folder)/\(id)") { descriptor in
                    try await store.read(id, range: nil) { bytes in
                        if let number = Descriptor.write(bytes, to: descriptor) {
                            throw Failure("a file cannot be written: \(Descriptor.sentence(number))")
                        }
                    }
                }
            }
        } catch {
            await pool.close()
            throw (error as? PostgresError).map { DatabaseFailure($0) as any Error } ?? error
        }
        await pool.close()
        console.note("\(Humane.count(Set(files).count, "file")) of it")
    }
}
