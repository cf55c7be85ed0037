import CPostgres
package import FoundationEssentials

/// One row of a result, valid only inside the closure that decodes it. Columns are read by place, in binary form.
package struct Row {
    let result: OpaquePointer
    let index: Int32

    /// The first row of the same result.
    package var first: Row { Row(result: result, index: 0) }

    package func isNull(_ column: Int) -> Bool {
        PQgetisnull(result, index, Int32(column)) == 1
    }

    /// The column's raw bytes, nil when it is null.
    package func bytes(_ column: Int) -> UnsafeRawBufferPointer? {
        guard !isNull(column), let start = PQgetvalue(result, index, Int32(column)) else { return nil }
        return UnsafeRawBufferPointer(start: start, count: Int(PQgetlength(result, index, Int32(column))))
    }

    package func bool(_ column: Int) throws(PostgresError) -> Bool {
        try required(column) { $0.first == 1 }
    }
    package func int(_ column: Int) throws(PostgresError) -> Int64 {
        guard let value = try optionalInt(column) else { throw null(column) }
        return value
    }
    package func optionalInt(_ column: Int) throws(PostgresError) -> Int64? {
        guard let bytes = bytes(column) else { return nil }
        switch bytes.count {
        case 2: return Int64(Int16(bigEndian: bytes.loadUnaligned(as: Int16.self)))
        case 4: return Int64(Int32(bigEndian: bytes.loadUnaligned(as: Int32.self)))
        case 8: return Int64(bigEndian: bytes.loadUnaligned(as: Int64.self))
        default: throw .undecodable(column: column, expected: "an integer")
        }
    }
    package func double(_ column: Int) throws(PostgresError) -> Double {
        guard let value = optionalDouble(column) else { throw null(column) }
        return value
    }
    package func optionalDouble(_ column: Int) -> Double? {
        guard let bytes = bytes(column), bytes.count == 8 else { return nil }
        return Double(bitPattern: UInt64(bigEndian: bytes.loadUnaligned(as: UInt64.self)))
    }
    package func string(_ column: Int) throws(PostgresError) -> String {
        try required(column) { String(decoding: $0, as: UTF8.self) }
    }
    package func optionalString(_ column: Int) -> String? {
        bytes(column).map { String(decoding: $0, as: UTF8.self) }
    }
    /// The text of a jsonb column.
    package func json(_ column: Int) throws(PostgresError) -> [UInt8] {
        guard let value = optionalJSON(column) else { throw null(column) }
        return value
    }
    package func optionalJSON(_ column: Int) -> [UInt8]? {
        bytes(column).map { Array($0.dropFirst()) }  // the binary form is the text behind a version byte
    }
    package func date(_ column: Int) throws(PostgresError) -> Date {
        guard let value = try optionalDate(column) else { throw null(column) }
        return value
    }
    package func optionalDate(_ column: Int) throws(PostgresError) -> Date? {
        try optionalInt(column).map { Timestamp.date(microseconds: $0) }
    }
    package func ints(_ column: Int) throws(PostgresError) -> [Int64] {
        try elements(column) { bytes throws(PostgresError) in
            switch bytes.count {
            case 2: Int64(Int16(bigEndian: bytes.loadUnaligned(as: Int16.self)))
            case 4: Int64(Int32(bigEndian: bytes.loadUnaligned(as: Int32.self)))
            case 8: Int64(bigEndian: bytes.loadUnaligned(as: Int64.self))
            default: throw .undecodable(column: column, expected: "integers")
            }
        }
    }
    package func strings(_ column: Int) throws(PostgresError) -> [String] {
        try elements(column) { bytes throws(PostgresError) in String(decoding: bytes, as: UTF8.self) }
    }

    private func required<T>(_ column: Int, _ read: (UnsafeRawBufferPointer) -> T) throws(PostgresError) -> T {
        guard let bytes = bytes(column) else { throw null(column) }
        return read(bytes)
    }

    private func elements<T>(
        _ column: Int, _ read: (UnsafeRawBufferPointer) throws(PostgresError) -> T
    ) throws(PostgresError) -> [T] {
        guard let bytes = bytes(column) else { throw null(column) }
        // Another statement's answer, or a type that was changed: an error, where a length beyond the bytes would end the process.
        let misread = PostgresError.undecodable(column: column, expected: "an array of one dimension")
        func word(_ offset: Int) throws(PostgresError) -> Int32 {
            guard offset + 4 <= bytes.count else { throw misread }
            return Int32(bigEndian: bytes.loadUnaligned(fromByteOffset: offset, as: Int32.self))
        }
        let dimensions = try word(0)
        if dimensions == 0, bytes.count == 12 { return [] }
        let count = try word(12)
        guard dimensions == 1, count >= 0 else { throw misread }
        var values: [T] = []
        var offset = 20
        for _ in 0..<count {
            let length = Int(try word(offset))
            guard length >= 0 else { throw null(column) }
            guard offset + 4 + length <= bytes.count else { throw misread }
            try values.append(read(UnsafeRawBufferPointer(rebasing: bytes[(offset + 4)..<(offset + 4 + length)])))
            offset += 4 + length
        }
        return values
    }

    private func null(_ column: Int) -> PostgresError {
        .undecodable(column: column, expected: "a value, not null")
    }
}
