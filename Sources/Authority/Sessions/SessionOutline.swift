import CountersignGate
import CountersignHandshake
import CountersignSchemes
import CountersignWire

/// The part of a session's row that the server keeps of every session. Without the rest, a million rows are
/// read without an allocation for each.
package struct SessionOutline: Sendable, Equatable {
    package var id: SessionID
    package var account: Int64
    package var app: AppName
    package var platform: Platform
    /// Whole Unix seconds, like all times here.
    package var created: Int64
    package var used: Int64
    package var change: Int64
    package var end: SessionTermination?
    package var opening: Session.LoginKind
    package var credentials: Credentials

    package enum Credentials: Sendable, Equatable {
        case device(DeviceCredentialOutline)
        case bearer(BearerCredentialOutline)
    }

    package init(
        id: SessionID, account: Int64, app: AppName, platform: Platform, created: Int64, used: Int64,
        change: Int64, end: SessionTermination?, opening: Session.LoginKind,
        credentials: Credentials
    ) {
        self.id = id
        self.account = account
        self.app = app
        self.platform = platform
        self.created = created
        self.used = used
        self.change = change
        self.end = end
        self.opening = opening
        self.credentials = credentials
    }

    package init(_ row: StoredSession) {
        self.init(
            id: row.id, account: row.account, app: row.app, platform: row.platform, created: row.created,
            used: row.used, change: row.change, end: row.end, opening: row.opening,
            credentials: Credentials(row.credentials))
    }
}

package struct DeviceCredentialOutline: Sendable, Equatable {
    package var epoch: UInt32
    package var epochBegan: Int64
    /// The release of `epoch`.
    package var release: KeyID?
    package var hasPreviousRoot: Bool
    package var hasSuccessor: Bool
    /// The sealed root of `epoch`; nil if it was not read.
    package var sealedRoot: SessionSecret?

    package init(
        epoch: UInt32, epochBegan: Int64, release: KeyID?, hasPreviousRoot: Bool, hasSuccessor: Bool,
        sealedRoot: SessionSecret? = nil
    ) {
        self.epoch = epoch
        self.epochBegan = epochBegan
        self.release = release
        self.hasPreviousRoot = hasPreviousRoot
        self.hasSuccessor = hasSuccessor
        self.sealedRoot = sealedRoot
    }
}

package struct BearerCredentialOutline: Sendable, Equatable {
    package var issued: Int64
    package var tokenExpires: Int64
    /// The hashes of the current and of the previous token.
    package var tokenHashes: SessionSecret
    package var hasPreviousToken: Bool
    package var hasPreviousLoginToken: Bool

    package init(
        issued: Int64, tokenExpires: Int64, tokenHashes: SessionSecret, hasPreviousToken: Bool,
        hasPreviousLoginToken: Bool
    ) {
        self.issued = issued
        self.tokenExpires = tokenExpires
        self.tokenHashes = tokenHashes
        self.hasPreviousToken = hasPreviousToken
        self.hasPreviousLoginToken = hasPreviousLoginToken
    }
}

extension SessionOutline.Credentials {
    fileprivate init(_ credentials: StoredSession.Credentials) {
        switch credentials {
        case .device(let device):
            self = .device(
                DeviceCredentialOutline(
                    epoch: device.epoch, epochBegan: device.epochBegan, release: device.release,
                    hasPreviousRoot: device.sealedPreviousRoot != nil, hasSuccessor: device.successor != nil,
                    sealedRoot: SessionSecret(device.sealedRoot)))
        case .bearer(let bearer):
            self = .bearer(
                BearerCredentialOutline(
                    issued: bearer.issued, tokenExpires: bearer.tokenExpires,
                    tokenHashes: SessionSecret(bearer.tokenHash + (bearer.previousTokenHash ?? [])),
                    hasPreviousToken: bearer.previousTokenHash != nil,
                    hasPreviousLoginToken: bearer.previousLoginTokenHash != nil))
        }
    }
}

/// What proves requests of a session: the sealed root of its epoch; for a bearer session, the hashes of its
/// current and previous tokens. A fixed number of bytes and no heap allocation.
package struct SessionSecret: Sendable, Equatable {
    /// Bytes of a sealed root: layout, nonce, 32 bytes, tag.
    package static let longest = 73

    private var storage = InlineArray<73, UInt8>(repeating: 0)
    private var count: UInt8 = 0

    /// The server never writes more bytes than fit; a longer value fails to open, truncated or not.
    package init(_ bytes: [UInt8]) {
        count = UInt8(min(bytes.count, SessionSecret.longest))
        for index in 0..<Int(count) { storage[index] = bytes[index] }
    }

    var bytes: [UInt8] { (0..<Int(count)).map { storage[$0] } }

    package static func == (left: SessionSecret, right: SessionSecret) -> Bool { left.bytes == right.bytes }

    /// Whether 32 bytes from `start` on are `hash`.
    func holds(_ hash: Span<UInt8>, at start: Int) -> Bool {
        storage.span.extracting(start..<start + 32).matches(hash)
    }
}
