import CountersignSeal
import CountersignWire

/// What a request says about its own signature, read and well formed, and not yet believed.
package struct Claim: Sendable {
    /// When the signature says it was made.
    package enum Created: Sendable, Equatable {
        /// Whole Unix seconds.
        case unix(Int64)
        /// The device's wall clock, as if it were UTC; the app's policy knows the zone.
        case wallClock(Int64)
        /// The scheme does not sign a time.
        case unsigned
    }

    /// What makes two requests the same one. Scoped by key and scheme.
    package typealias ReplayKey = ShortBytes

    package var scheme: SchemeName
    package var keyID: KeyID
    package var algorithm: MACAlgorithm
    package var mac: MAC
    package var created = Created.unsigned
    /// Whole Unix seconds from which on the signer does not want it accepted.
    package var expires: Int64?
    /// Nil where the scheme has none.
    package var replayKey: ReplayKey?
    package var coveredFields = FieldSet.everything
    package var body = BodyExpectation.inSignature
    /// What the caller says of itself, for schemes that sign it: compared with the key's.
    package var platform: ShortBytes?
    package var version: ShortBytes?
    /// What it lacks of the least that the gate accepts.
    package var shortfalls: Shortfalls = []

    init(scheme: SchemeName, keyID: KeyID, algorithm: MACAlgorithm, mac: MAC) {
        self.scheme = scheme
        self.keyID = keyID
        self.algorithm = algorithm
        self.mac = mac
    }
}
