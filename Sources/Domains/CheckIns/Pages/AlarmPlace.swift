import JSON
import PageKit

/// Where the person of an alarm was: its coordinates as text, and a link to the map that the reader prefers. Nothing is loaded from there.
struct AlarmPlace {
    private let latitude: String
    private let longitude: String
    private let accuracy: Int?
    private let time: String
    private let map: String

    /// nil: there is none.
    init?(_ facts: JSONValue?) {
        guard let latitude = Self.degrees(facts?["latitude"], most: 90),
            let longitude = Self.degrees(facts?["longitude"], most: 180)
        else { return nil }
        self.latitude = latitude
        self.longitude = longitude
        accuracy = Self.number(facts?["accuracy"]).flatMap { Int(exactly: $0.rounded()) }
        time = facts?["local"]?.text ?? ""
        map = facts?["map"]?.text ?? "osm"
    }

    func html(_ words: PageWords) -> String {
        let text = "\(latitude), \(longitude)" + (accuracy.map { " (± \($0) m)" } ?? "")
        return "<h2>\(words.place)</h2><p><bdi dir=\"ltr\">\(text)</bdi><br>\(LinkPage.time(time, words))</p>"
            + "<p><a class=\"button\" href=\"\(LinkPage.escaped(address))\" rel=\"noreferrer noopener\">\(words.openMap)</a></p>"
    }

    /// The link tells the map where to look, and nothing of the alarm: no referrer goes with it.
    var address: String {
        switch map {
        case "geo": "geo:\(latitude),\(longitude)" + (accuracy.map { ";u=\($0)" } ?? "")
        case "apple": "https://maps.apple.com/?ll=\(latitude),\(longitude)&q=\(latitude),\(longitude)"
        case "google": "https://www.google.com/maps/search/?api=1&query=\(latitude),\(longitude)"
        default:
            "https://www.openstreetmap.org/?mlat=\(latitude)&mlon=\(longitude)#map=16/\(latitude)/\(longitude)"
        }
    }

    private static func number(_ value: JSONValue?) -> Double? {
        switch value {
        case .number(let digits): Double(digits)
        case .int(let number): Double(number)
        case .double(let number): number
        default: nil
        }
    }

    /// With up to six digits behind the point, which is a tenth of a metre.
    private static func degrees(_ value: JSONValue?, most: Double) -> String? {
        guard let degrees = number(value), degrees.magnitude <= most else { return nil }
        let millionths = Int((degrees * 1_000_000).rounded())
        var fraction = String(millionths.magnitude % 1_000_000)
        fraction = String(repeating: "0", count: 6 - fraction.count) + fraction
        while fraction.hasSuffix("0"), fraction.count > 1 { fraction.removeLast() }
        return (millionths < 0 ? "-" : "") + "\(millionths.magnitude / 1_000_000).\(fraction)"
    }
}
