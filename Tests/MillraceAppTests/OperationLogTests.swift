import Foundation
import TestSupport
import Testing

@testable import MillraceApp

@Suite struct OperationLogTests {
    /// Gives a directory that is gone afterwards.
    private func withDirectory(_ body: (URL) async throws -> Void) async throws {
        let directory = FileManager.default.temporaryDirectory.appending(path: "operations-\(UUID().uuidString)")
        defer { try? FileManager.default.removeItem(at: directory) }
        try await body(directory)
    }

    private func operations(_ count: Int) -> [QueuedOperation] {
        (0..<count).map {
            QueuedOperation(
                $0 % 3 == 0 ? "check_in" : "mood_log", ["person": "anna", "note": .string("nummer \($0) \n ü")],
                at: Date(timeIntervalSince1970: 1_795_775_003.25 + Double($0)))
        }
    }

    @Test func `what was added is there again, in order, without what has ended`() async throws {
        try await withDirectory { directory in
            let all = operations(20)
            do {
                let log = try OperationLog(directory: directory)
                #expect(try await log.open().pending == [])
                for operation in all { try await log.append([.added(operation)]) }
                try await log.append([.ended(all[3].id), .ended(all[7].id)])
                await log.close()
            }
            let log = try OperationLog(directory: directory)
            let found = try await log.open()
            #expect(found.pending == all.filter { $0.id != all[3].id && $0.id != all[7].id })
            #expect(found.damaged == 0)
        }
    }

    /// A crash leaves a prefix of what was being written.
    @Test func `wherever a crash cuts the file, what was acknowledged before is there and more can be added`()
        async throws
    {
        try await withDirectory { directory in
            let all = operations(4)
            var whole = Data()
            var acknowledged: [Int: Int] = [0: 0]
            for (index, operation) in all.enumerated() {
                whole += try OperationLog.line(.added(operation))
                acknowledged[whole.count] = index + 1
            }
            try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
            let file = directory.appending(path: "operations")
            let later = operations(1)[0]
            var complete = 0
            for cut in 0...whole.count {
                complete = acknowledged[cut] ?? complete
                try whole.prefix(cut).write(to: file)
                do {
                    let log = try OperationLog(directory: directory)
                    #expect(try await log.open().pending == Array(all.prefix(complete)), "cut at \(cut)")
                    try await log.append([.added(later)])
                    await log.close()
                }
                let log = try OperationLog(directory: directory)
                #expect(try await log.open().pending == Array(all.prefix(complete)) + [later], "cut at \(cut)")
                await log.close()
            }
        }
    }

    @Test func `a crash while the file is replaced loses nothing`() async throws {
        try await withDirectory { directory in
            let all = operations(3)
            do {
                let log = try OperationLog(directory: directory)
                _ = try await log.open()
                try await log.append(all.map { .added($0) })
                await log.close()
            }
            // The other file was not whole yet.
            try Data("half of it".utf8).write(to: directory.appending(path: "operations.new"))
            let log = try OperationLog(directory: directory)
            #expect(try await log.open().pending == all)
        }
    }

    /// Each write of the log, ended after each of its bytes: of records that end others, of a file that replaces another, of the device's file, and
    /// of a file to be uploaded. A crash of the system can also leave zeros where bytes should be.
    @Test func `wherever a kill ends any write, the state before it or the one after it is there`() async throws {
        try await withDirectory { directory in
            let all = operations(6)
            let file = directory.appending(path: "operations")
            try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
            let before = try all.reduce(Data()) { try $0 + OperationLog.line(.added($1)) }
            let ending = try [all[1], all[4]].reduce(Data()) { try $0 + OperationLog.line(.ended($1.id)) }
            let whole = try OperationLog.line(.ended(all[1].id)).count
            for cut in 0...ending.count {
                for zeros in [0, 7] where zeros == 0 || cut < ending.count {
                    try (before + ending.prefix(cut) + Data(repeating: 0, count: zeros)).write(to: file)
                    let left = all.enumerated().filter {
                        !(cut >= whole && $0.offset == 1) && !(cut == ending.count && $0.offset == 4)
                    }.map(\.element)
                    let log = try OperationLog(directory: directory)
                    let found = try await log.open()
                    #expect(found.pending == left && found.damaged == 0, "cut at \(cut)")
                    await log.close()
                }
            }
            let device = Data(#"{"device":"one","person":"anna","token":"secret"}"#.utf8)
            for cut in 0...before.count {
                // Neither the file that was to replace the other nor the new device's file has its name yet.
                try before.write(to: file)
                try before.prefix(cut).write(to: directory.appending(path: "operations.new"))
                try device.write(to: directory.appending(path: "device"))
                try device.prefix(cut).write(to: directory.appending(path: "device.new"))
                let log = try OperationLog(directory: directory)
                #expect(try await log.open().pending == all)
                #expect(try await log.stored("device") == device)
                if cut % 50 == 0 {
                    try await log.store(Data("next".utf8), as: "device")
                    #expect(try await log.stored("device") == Data("next".utf8))
                }
                await log.close()
            }
            let uploads = UploadFiles(directory)
            let (id, bytes) = (UUID(), Data("the contents of a file".utf8))
            for cut in 0...bytes.count {
                let path = uploads.url(id).path + ".new"
                try? FileManager.default.createDirectory(
                    at: directory.appending(path: "uploads"), withIntermediateDirectories: true)
                try bytes.prefix(cut).write(to: URL(fileURLWithPath: path))
                try await uploads.sweep(keeping: [id])
                #expect(!FileManager.default.fileExists(atPath: path))
                try bytes.prefix(cut).write(to: URL(fileURLWithPath: path))
                try await uploads.keep(DocumentFile(bytes, name: "a", mimeType: "text/plain"), as: id)
                #expect(try Data(contentsOf: uploads.url(id)) == bytes)
            }
            try await uploads.sweep(keeping: [])
            #expect(!FileManager.default.fileExists(atPath: uploads.url(id).path))
        }
    }

    @Test func `a line that a disk has damaged is left out and counted, and the others are kept`() async throws {
        try await withDirectory { directory in
            let all = operations(3)
            do {
                let log = try OperationLog(directory: directory)
                _ = try await log.open()
                try await log.append(all.map { .added($0) })
                await log.close()
            }
            let file = directory.appending(path: "operations")
            var bytes = try Data(contentsOf: file)
            let first = try #require(bytes.firstIndex(of: 0x0A))
            bytes[first + 30] ^= 1
            try bytes.write(to: file)
            let log = try OperationLog(directory: directory)
            let found = try await log.open()
            #expect(found.pending == [all[0], all[2]] && found.damaged == 1)
        }
    }

    @Test func `a file of operations that have ended is replaced by a short one`() async throws {
        try await withDirectory { directory in
            let file = directory.appending(path: "operations")
            let log = try OperationLog(directory: directory)
            _ = try await log.open()
            let all = operations(300)
            try await log.append(all.map { .added($0) })
            let before = try Data(contentsOf: file).count
            try await log.append(all.dropLast(2).map { .ended($0.id) })
            #expect(try Data(contentsOf: file).count < before / 50)
            try await log.append([.added(operations(1)[0])])
            let text = String(decoding: try Data(contentsOf: file), as: UTF8.self)
            #expect(text.split(separator: "\n").count == 3)
        }
    }

    @Test func `a directory is open once, and free again afterwards`() async throws {
        try await withDirectory { directory in
            do {
                let log = try OperationLog(directory: directory)
                _ = try await log.open()
                let error = try #require(throws: AppError.self) { _ = try OperationLog(directory: directory) }
                #expect(error.errorClass == .conflict && error.message.contains(directory.path))
                await log.close()
                let closed = try await failure(as: AppError.self) { try await log.append([]) }
                #expect(closed?.message == "the queue is closed")
            }
            _ = try OperationLog(directory: directory)
        }
    }

    @Test func `the checksum is that of zip files`() {
        #expect(OperationLog.checksum(Data("123456789".utf8)) == 0xCBF4_3926)
    }
}
