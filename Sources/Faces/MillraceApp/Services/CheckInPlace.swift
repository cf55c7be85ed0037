public import Foundation

/// Where the person is. Only the page of an alarm shows it, to contacts who have agreed; it is in no notice, feed or log.
public struct CheckInPlace: Sendable, Hashable {
    /// In degrees, north is positive.
    public var latitude: Double
    /// In degrees, east is positive.
    public var longitude: Double
    /// In metres; nil: unknown.
    public var accuracy: Double?
    /// When the person was there; nil: when the gateway learns of it.
    public var at: Date?

    /// From its parts. A check-in that waits for the network needs `at`: otherwise the place counts as of when it was told.
    public init(latitude: Double, longitude: Double, accuracy: Double? = nil, at: Date? = nil) {
        (self.latitude, self.longitude, self.accuracy, self.at) = (latitude, longitude, accuracy, at)
    }
}

extension CheckInPlace {
    /// As the doors take it. What is no number cannot be told in JSON, and must not stop a call for help.
    var value: AppValue {
        guard latitude.isFinite, longitude.isFinite else { return .object(["latitude": nil, "longitude": nil]) }
        var parts: [String: AppValue] = ["latitude": .double(latitude), "longitude": .double(longitude)]
        if let accuracy, accuracy.isFinite { parts["accuracy"] = .double(accuracy) }
        if let at { parts["at"] = AppValue(at) }
        return .object(parts)
    }

    /// Whether it can be right.
    var isOnEarth: Bool {
        guard let accuracy, accuracy.isFinite else { return latitude.magnitude <= 90 && longitude.magnitude <= 180 }
        return latitude.magnitude <= 90 && longitude.magnitude <= 180 && 0...20_000_000 ~= accuracy
    }
}
