import CIdn2

/// Host names of any script.
package enum InternationalName {
    /// The ASCII form by IDNA 2008 with the mapping of UTS 46 (libidn2 does both); nil if the name is not valid.
    package static func ascii(_ text: String) -> String? {
        var found: UnsafeMutablePointer<UInt8>?
        // NFC_INPUT asks libidn2 to normalise; NONTRANSITIONAL keeps ß and its like, as registries do.
        let flags = Int32(IDN2_NFC_INPUT.rawValue | IDN2_NONTRANSITIONAL.rawValue)
        guard idn2_lookup_u8(text, &found, flags) == IDN2_OK.rawValue, let found else { return nil }
        defer { idn2_free(found) }
        return String(cString: found)
    }
}
