extension Secret {
    /// The bytes as C wants them, for the length of `body`. Empty ones have no address of their own; C is then given
    /// that of a byte it does not read.
    func withPointer<Result>(_ body: (UnsafePointer<UInt8>) -> Result) -> Result {
        withExposedBytes { $0.withPointer(body) }
    }
}

extension Span<UInt8> {
    /// The same for bytes that are no secret.
    func withPointer<Result>(_ body: (UnsafePointer<UInt8>) -> Result) -> Result {
        withUnsafeBufferPointer { buffer in
            if let start = buffer.baseAddress { return body(start) }
            return withUnsafePointer(to: 0) { body($0) }
        }
    }
}
