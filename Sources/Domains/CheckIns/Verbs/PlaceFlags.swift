import CommandKit

extension CommandFlag {
    static let place = CommandFlag.single(
        "place", "LATITUDE,LONGITUDE", .custom(expects: PlaceText.expectation, complaint: PlaceText.complaint),
        environment: .none, help: "Where the person is, in degrees, as 48.137,11.575. Only the alarm's page shows it.")
    static let accuracy = CommandFlag.single(
        "accuracy", "METRES", .integer(0...20_000_000), environment: .none,
        help: "With --place: how accurate it is.")
}

/// Coordinates as text: `48.137,11.575`.
enum PlaceText {
    static let expectation = "degrees of latitude and longitude, as 48.137,11.575"

    /// It does not repeat what was given: a place belongs in no log.
    static let complaint: @Sendable (String) -> String? = { text in
        if let place = read(text) {
            return place.latitude.magnitude > 90
                ? "begins with a latitude outside -90 to 90"
                : place.longitude.magnitude > 180 ? "ends with a longitude outside -180 to 180" : nil
        }
        return "takes \(expectation)"
    }

    static func read(_ text: String) -> CheckInAdmin.GivenPlace? {
        let parts = text.split(separator: ",", omittingEmptySubsequences: false)
        guard parts.count == 2, let latitude = degrees(parts[0]), let longitude = degrees(parts[1]) else { return nil }
        return CheckInAdmin.GivenPlace(latitude: latitude, longitude: longitude)
    }

    /// Plain decimals only: Swift also reads 0x10 and 1e3.
    private static func degrees(_ text: Substring) -> Double? {
        let text = text.drop { $0 == " " }
        guard text.utf8.count <= 24, text.allSatisfy({ $0.isASCII && $0.isNumber || $0 == "." || $0 == "-" }) else {
            return nil
        }
        return Double(text)
    }
}

extension Parsed {
    /// From --place and --accuracy.
    func place() throws -> CheckInAdmin.GivenPlace? {
        guard var place = string("place").flatMap(PlaceText.read) else {
            guard integer("accuracy") == nil else { throw Failure(.misused, "--accuracy needs --place") }
            return nil
        }
        place.accuracy = integer("accuracy").map(Double.init)
        return place
    }
}
