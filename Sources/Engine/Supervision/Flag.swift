/// A feature that is on for a share of all keys: for the same keys in every process and in the database. When the share grows, keys are
/// only added.
package struct Flag: Sendable, Equatable {
    package var name: String
    package var percent: Int
    package var always: Set<String>

    package init(name: String, percent: Int, always: Set<String> = []) {
        self.name = name
        self.percent = percent
        self.always = always
    }

    package func isOn(_ key: String) -> Bool {
        always.contains(key) || Self.bucket(of: key, in: name) <= percent
    }

    /// 1 to 100: MurmurHash3 of `name:key`, so that a key has a different place in each flag.
    package static func bucket(of key: String, in name: String) -> Int {
        Int(murmur("\(name):\(key)") % 100) + 1
    }

    /// MurmurHash3, x86, 32 bits, seed 0.
    package static func murmur(_ text: String) -> UInt32 {
        let bytes = Array(text.utf8)
        var hash: UInt32 = 0
        func mixed(_ block: UInt32) -> UInt32 {
            let product = block &* 0xcc9e_2d51
            return (product << 15 | product >> 17) &* 0x1b87_3593
        }
        var index = 0
        while index + 4 <= bytes.count {
            let block = (0..<4).reduce(UInt32(0)) { $0 | UInt32(bytes[index + $1]) << UInt32(8 * $1) }
            hash ^= mixed(block)
            hash = (hash << 13 | hash >> 19) &* 5 &+ 0xe654_6b64
            index += 4
        }
        if index < bytes.count {
            var tail: UInt32 = 0
            for place in (index..<bytes.count).reversed() { tail = tail << 8 | UInt32(bytes[place]) }
            hash ^= mixed(tail)
        }
        hash ^= UInt32(bytes.count)
        hash = (hash ^ hash >> 16) &* 0x85eb_ca6b
        hash = (hash ^ hash >> 13) &* 0xc2b2_ae35
        return hash ^ hash >> 16
    }
}
