import CountersignSeal
import CountersignWire

/// Caches the last few signing keys derived from one secret, one for each day, region and service, so that a
/// request under a cached key costs no derivation. Source: AWS Signature Version 4, "Calculate the
/// signature".
///
/// The caller chooses the scope, so an unverified scope must not fill the cache. A key is cached only after a
/// signature under it has verified: a caller without the secret can neither fill the cache nor evict a key,
/// and a caller with the secret slows down only its own requests. A failed signature costs one derivation
/// whether or not the key was cached, so that the time does not reveal whether an id exists.
///
/// The lock is held for a look-up among four keys.
final class DerivedKeyCache: Sendable {
    private struct Slot {
        /// `yyyymmdd/region/service/aws4_request`.
        var scope: [UInt8]
        var key: HMACSHA256
    }

    private struct Recent {
        var slots: [Slot] = []
        /// The one to be replaced.
        var next = 0
    }

    /// An app signs for one service, in one region, and around midnight under two days.
    private static let most = 4

    private let secret: Secret
    private let recent = Locked(Recent())

    init(_ secret: Secret) { self.secret = secret }

    /// The MAC of a string to sign under the key of the scope that it names; empty, and so equal to no
    /// signature, if it names none.
    func mac(of text: borrowing Span<UInt8>) -> MAC {
        guard let scope = CredentialScope(in: text) else { return MAC() }
        let key =
            kept(for: text.extracting(scope.whole))
            ?? DerivedKeyCache.derive(from: secret, scope: scope, text: text)
        return MAC(key.authenticate(text))
    }

    /// Records whether the MAC of `text` that was just computed equals the sent one.
    func recordVerdict(_ verdict: ConstantTime.Verdict, of text: borrowing Span<UInt8>) {
        guard let scope = CredentialScope(in: text) else { return }
        let isKept = kept(for: text.extracting(scope.whole)) != nil
        switch verdict {
        case .equal:
            if !isKept {
                keep(
                    DerivedKeyCache.derive(from: secret, scope: scope, text: text),
                    for: text.extracting(scope.whole))
            }
        case .different: if isKept { _ = DerivedKeyCache.derive(from: secret, scope: scope, text: text) }
        }
    }

    /// How many keys are kept.
    var count: Int { recent.with { $0.slots.count } }

    private func kept(for scope: Span<UInt8>) -> HMACSHA256? {
        recent.with { recent in
            for slot in recent.slots {
                let bytes = slot.scope
                if bytes.span.matches(scope) { return slot.key }
            }
            return nil
        }
    }

    private func keep(_ key: HMACSHA256, for scope: Span<UInt8>) {
        let slot = Slot(scope: (0..<scope.count).map { scope[$0] }, key: key)
        recent.with { recent in
            if recent.slots.count < DerivedKeyCache.most {
                recent.slots.append(slot)
            } else {
                recent.slots[recent.next] = slot
                recent.next = (recent.next + 1) % DerivedKeyCache.most
            }
        }
    }

    private static func derive(from secret: Secret, scope: CredentialScope, text: borrowing Span<UInt8>)
        -> HMACSHA256
    {
        signingKey(from: secret, scope: scope, text: text).withExposedBytes { HMACSHA256(key: $0) }
    }

    /// HMAC of the day, then the region, then the service, then the terminator, each under the one before.
    static func signingKey(from secret: Secret, scope: CredentialScope, text: borrowing Span<UInt8>) -> Secret
    {
        var key = secret.prefixed(by: "AWS4")
        for part in [scope.day, scope.region, scope.service, scope.terminator] {
            key = key.derived(for: text.extracting(part))
        }
        return key
    }
}

/// Where a string to sign names its day, region and service: in its third line.
struct CredentialScope {
    let whole: Range<Int>
    let day: Range<Int>
    let region: Range<Int>
    let service: Range<Int>
    let terminator: Range<Int>

    /// Nil where there is no third line of four parts.
    init?(in text: borrowing Span<UInt8>) {
        // The algorithm and the time come first, in as many bytes always.
        let start = 17 + 17
        guard text.count > start, text[start - 1] == UInt8(ascii: "\n") else { return nil }
        var slashes = (0, 0, 0)
        var count = 0
        var end = start
        while end < text.count, text[end] != UInt8(ascii: "\n") {
            if text[end] == UInt8(ascii: "/") {
                switch count {
                case 0: slashes.0 = end
                case 1: slashes.1 = end
                case 2: slashes.2 = end
                default: return nil
                }
                count += 1
            }
            end += 1
        }
        guard count == 3 else { return nil }
        whole = start..<end
        day = start..<slashes.0
        region = slashes.0 + 1..<slashes.1
        service = slashes.1 + 1..<slashes.2
        terminator = slashes.2 + 1..<end
    }
}
