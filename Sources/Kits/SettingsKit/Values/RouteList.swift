/// `acme=us, beta=eu`: the keys that belong to another database than their hash says.
package enum RouteList {
    package static let expectation = "keys with names of databases, such as acme=us,beta=eu"

    package static func complaint(_ text: String) -> String? {
        read(text) == nil ? "takes \(expectation); each key once" : nil
    }

    package static func read(_ text: String) -> [String: String]? {
        var routes: [String: String] = [:]
        for line in text.split(whereSeparator: \.isNewline) {
            for item in ListText.items(String(line)) where !item.isEmpty {
                // A key may hold an equals sign; a name does not.
                guard let equals = item.lastIndex(of: "=") else { return nil }
                let (key, name) = (String(item[..<equals]), String(item[item.index(after: equals)...]))
                guard !key.isEmpty, DatabaseList.isName(name), routes.updateValue(name, forKey: key) == nil else {
                    return nil
                }
            }
        }
        return routes.isEmpty ? nil : routes
    }
}
