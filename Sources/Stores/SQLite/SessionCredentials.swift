import CountersignAuthority

/// What a session's requests are proved by, as the sixteen columns from `signing_key` to
/// `previous_login_token_hash`.
enum SessionCredentials {
    private static let nullDevice = [SQLValue](repeating: .null, count: 10)
    private static let nullBearer = [SQLValue](repeating: .null, count: 6)

    static func values(_ credentials: StoredSession.Credentials) -> [SQLValue] {
        switch credentials {
        case .device(let device):
            let next = device.successor
            return [
                .blob(device.signingKey), .blob(device.agreementKey), .integer(Int64(device.epoch)),
                .integer(device.epochBegan), .blob(device.sealedRoot), .optional(device.sealedPreviousRoot),
                .blob(ByteStrings.encode(device.attempts)), .optional(next?.sealedRoot), .optional(next?.ephemeral),
                .optional(next.map { ByteStrings.encode($0.attempts) }),
            ] + nullBearer
        case .bearer(let bearer):
            return nullDevice + [
                .blob(bearer.tokenHash), .integer(bearer.tokenExpires), .optional(bearer.previousTokenHash),
                .blob(bearer.loginTokenHash), .integer(bearer.issued), .optional(bearer.previousLoginTokenHash),
            ]
        }
    }

    /// Of columns from `first` on; nil where they cannot be read.
    static func read(_ row: borrowing Statement, from first: Int32) -> StoredSession.Credentials? {
        guard row.isNull(first) else { return device(row, first).map { .device($0) } }
        var bearer = BearerCredentials(
            tokenHash: row.blob(first + 10), tokenExpires: row.integer(first + 11), issued: row.integer(first + 14),
            loginTokenHash: row.blob(first + 13))
        bearer.previousTokenHash = row.isNull(first + 12) ? nil : row.blob(first + 12)
        bearer.previousLoginTokenHash = row.isNull(first + 15) ? nil : row.blob(first + 15)
        return .bearer(bearer)
    }

    private static func device(_ row: borrowing Statement, _ first: Int32) -> DeviceCredentials? {
        guard let epoch = UInt32(exactly: row.integer(first + 2)),
            let attempts = ByteStrings.decode(row.blob(first + 6))
        else { return nil }
        var device = DeviceCredentials(
            signingKey: row.blob(first), agreementKey: row.blob(first + 1), epochBegan: row.integer(first + 3),
            sealedRoot: row.blob(first + 4))
        device.epoch = epoch
        device.sealedPreviousRoot = row.isNull(first + 5) ? nil : row.blob(first + 5)
        device.attempts = attempts
        if !row.isNull(first + 7) {
            guard let tried = ByteStrings.decode(row.blob(first + 9)) else { return nil }
            device.successor = DeviceCredentials.Successor(
                sealedRoot: row.blob(first + 7), ephemeral: row.blob(first + 8), attempts: tried)
        }
        return device
    }
}
