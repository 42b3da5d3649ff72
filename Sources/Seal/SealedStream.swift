import CountersignSodium

/// Bytes in sealed chunks: libsodium's secretstream, XChaCha20-Poly1305. Each chunk is sealed behind the ones
/// before it, so that none can be altered, left out, repeated or moved, and the last one says that it is, so
/// that the end cannot be cut off. A key is for one stream. Source: doc.libsodium.org,
/// secret-key_cryptography/secretstream.
package enum SealedStream {
    package static let keyBytes = crypto_secretstream_xchacha20poly1305_keybytes()
    /// What stands before the first chunk.
    package static let headBytes = crypto_secretstream_xchacha20poly1305_headerbytes()
    /// By how much a sealed chunk is longer.
    package static let overhead = crypto_secretstream_xchacha20poly1305_abytes()

    package enum Place: Sendable { case inner, last }

    /// Seals a stream. One user at a time.
    package final class Sealer {
        private var state: crypto_secretstream_xchacha20poly1305_state
        package let head: [UInt8]

        /// Nil if `key` is not ``keyBytes`` long.
        package init?(key: Secret) {
            guard key.count == keyBytes, sodium_init() >= 0 else { return nil }
            var head = [UInt8](repeating: 0, count: headBytes)
            var start = crypto_secretstream_xchacha20poly1305_state()
            defer { withUnsafeMutableBytes(of: &start) { sodium_memzero($0.baseAddress, $0.count) } }
            key.withPointer { key in
                _ = crypto_secretstream_xchacha20poly1305_init_push(&start, &head, key)
            }
            (state, self.head) = (start, head)
        }

        deinit { withUnsafeMutableBytes(of: &state) { sodium_memzero($0.baseAddress, $0.count) } }

        /// `data` is authenticated with the chunk.
        package func seal(_ chunk: Span<UInt8>, at place: Place, boundTo data: [UInt8]) -> [UInt8] {
            var sealed = [UInt8](repeating: 0, count: chunk.count + overhead)
            chunk.withPointer {
                _ = crypto_secretstream_xchacha20poly1305_push(
                    &state, &sealed, nil, $0, UInt64(chunk.count), data, UInt64(data.count), tag(of: place))
            }
            return sealed
        }
    }

    /// Opens a stream. One user at a time.
    package final class Opener {
        private var state = crypto_secretstream_xchacha20poly1305_state()

        /// Nil if `key` or `head` has another length than it must have.
        package init?(key: Secret, head: [UInt8]) {
            guard key.count == keyBytes, head.count == headBytes, sodium_init() >= 0 else { return nil }
            let verdict = key.withPointer {
                crypto_secretstream_xchacha20poly1305_init_pull(&state, head, $0)
            }
            guard verdict == 0 else { return nil }
        }

        deinit { withUnsafeMutableBytes(of: &state) { sodium_memzero($0.baseAddress, $0.count) } }

        /// The next chunk, which replaces `chunk`, and its place. Throws if it is not the one that was sealed
        /// there; nothing can be opened after that.
        package func open(
            _ sealed: ArraySlice<UInt8>, into chunk: inout [UInt8], boundTo data: [UInt8]
        ) throws(SealError) -> Place {
            guard sealed.count >= overhead else { throw SealError.notOpened }
            let count = sealed.count - overhead
            if chunk.count > count { chunk.removeLast(chunk.count - count) }
            while chunk.count < count { chunk.append(0) }
            var found: UInt8 = 0
            // One byte more than an empty chunk has: the pointer to no bytes may be null.
            if count == 0 { chunk.append(0) }
            let verdict = sealed.withUnsafeBufferPointer { sealed in
                crypto_secretstream_xchacha20poly1305_pull(
                    &state, &chunk, nil, &found, sealed.baseAddress, UInt64(sealed.count), data,
                    UInt64(data.count))
            }
            if count == 0 { chunk.removeAll(keepingCapacity: true) }
            guard verdict == 0 else { throw SealError.notOpened }
            switch found {
            case tag(of: .inner): return .inner
            case tag(of: .last): return .last
            default: throw SealError.notOpened
            }
        }
    }

    private static func tag(of place: Place) -> UInt8 {
        switch place {
        case .inner: crypto_secretstream_xchacha20poly1305_tag_message()
        case .last: crypto_secretstream_xchacha20poly1305_tag_final()
        }
    }
}

extension Secret {
    /// Wipes the bytes, which are not needed any more, and leaves none.
    package static func wipe(_ bytes: inout [UInt8]) {
        bytes.withUnsafeMutableBytes { sodium_memzero($0.baseAddress, $0.count) }
        bytes.removeAll(keepingCapacity: true)
    }
}
