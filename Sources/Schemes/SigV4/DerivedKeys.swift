import CountersignSeal
import CountersignWire

#if canImport(Darwin)
    import Darwin
#else
    import Glibc
#endif

/// The keys that one secret signs with: one for each day, region and service, and the few that were used last kept, so
/// that a request under one of those costs no derivation. Source: AWS Signature Version 4, "Calculate the signature".
///
/// A caller writes the scope himself, so what is kept must not be his to choose. A key is kept only once a signature
/// under it held: who does not have the secret can neither fill this nor push anything out, and who has it slows down
/// only himself. Failing costs one derivation whether or not the key was kept, so that time does not tell an id that
/// exists from one that does not.
///
/// Safe to share: `slots` and `next` are touched under the lock, which is held for a look-up of four.
final class DerivedKeys: @unchecked Sendable {
    private struct Slot {
        /// `yyyymmdd/region/service/aws4_request`.
        var scope: [UInt8]
        var key: HMACSHA256
    }

    /// An app signs for one service, in one region, and around midnight under two days.
    private static let most = 4

    private let secret: Secret
    private let lock: UnsafeMutablePointer<pthread_mutex_t>
    private var slots: [Slot] = []
    private var next = 0

    init(_ secret: Secret) {
        self.secret = secret
        lock = .allocate(capacity: 1)
        pthread_mutex_init(lock, nil)
    }

    deinit {
        pthread_mutex_destroy(lock)
        lock.deallocate()
    }

    /// The MAC of a string to sign under the key of the scope it names; empty where it names none, and then it equals no
    /// signature.
    func mac(of text: borrowing Span<UInt8>) -> MAC {
        guard let scope = Scope(in: text) else { return MAC() }
        let key = kept(for: text.extracting(scope.whole)) ?? DerivedKeys.derive(secret, scope, text)
        return MAC(key.authenticate(text))
    }

    /// Learns what became of a MAC of `text` that was just computed.
    func settle(_ verdict: ConstantTime.Verdict, of text: borrowing Span<UInt8>) {
        guard let scope = Scope(in: text) else { return }
        let isKept = kept(for: text.extracting(scope.whole)) != nil
        switch verdict {
        case .equal: if !isKept { keep(DerivedKeys.derive(secret, scope, text), for: text.extracting(scope.whole)) }
        case .different: if isKept { _ = DerivedKeys.derive(secret, scope, text) }
        }
    }

    /// How many keys are kept.
    var count: Int {
        pthread_mutex_lock(lock)
        defer { pthread_mutex_unlock(lock) }
        return slots.count
    }

    private func kept(for scope: Span<UInt8>) -> HMACSHA256? {
        pthread_mutex_lock(lock)
        defer { pthread_mutex_unlock(lock) }
        for slot in slots {
            let bytes = slot.scope
            if bytes.span.matches(scope) { return slot.key }
        }
        return nil
    }

    private func keep(_ key: HMACSHA256, for scope: Span<UInt8>) {
        let slot = Slot(scope: (0..<scope.count).map { scope[$0] }, key: key)
        pthread_mutex_lock(lock)
        defer { pthread_mutex_unlock(lock) }
        if slots.count < DerivedKeys.most {
            slots.append(slot)
        } else {
            slots[next] = slot
            next = (next + 1) % DerivedKeys.most
        }
    }

    private static func derive(_ secret: Secret, _ scope: Scope, _ text: borrowing Span<UInt8>) -> HMACSHA256 {
        signingKey(secret, scope, text).withExposedBytes { HMACSHA256(key: $0) }
    }

    /// HMAC of the day, then the region, then the service, then the terminator, each under the one before.
    static func signingKey(_ secret: Secret, _ scope: Scope, _ text: borrowing Span<UInt8>) -> Secret {
        var key = secret.prefixed(by: "AWS4")
        for part in [scope.day, scope.region, scope.service, scope.terminator] {
            key = key.derived(for: text.extracting(part))
        }
        return key
    }
}

/// Where a string to sign names its day, region and service: in its third line.
struct Scope {
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
        var slashes = InlineArray<3, Int>(repeating: 0)
        var count = 0
        var end = start
        while end < text.count, text[end] != UInt8(ascii: "\n") {
            if text[end] == UInt8(ascii: "/") {
                guard count < 3 else { return nil }
                slashes[count] = end
                count += 1
            }
            end += 1
        }
        guard count == 3 else { return nil }
        whole = start..<end
        day = start..<slashes[0]
        region = slashes[0] + 1..<slashes[1]
        service = slashes[1] + 1..<slashes[2]
        terminator = slashes[2] + 1..<end
    }
}
