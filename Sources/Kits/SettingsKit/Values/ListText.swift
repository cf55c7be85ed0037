/// Lists with commas, as the environment has them.
package enum ListText {
    package static func items(_ text: String) -> [String] {
        text.split(separator: ",").map { item in
            String(item.drop { $0 == " " }.reversed().drop { $0 == " " }.reversed())
        }
    }
}
