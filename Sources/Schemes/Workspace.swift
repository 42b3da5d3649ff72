import CountersignWire

/// Buffers that one request's verdict needs, kept from one to the next so that a verdict allocates nothing.
///
/// A workspace belongs to one request from claim to verdict: what a scheme's `claim` leaves here, its `spell` reads.
package struct Workspace: ~Copyable, Sendable {
    package var text = StringToSign()
    /// message-signatures: what the signature names, in its order.
    var components: [Component] = []
    /// form-md5: the parameters, decoded into `decoded`, sorted by name.
    var parameters: [Parameter] = []
    var decoded: [UInt8] = []
    /// message-signatures: the signature's parameters as they were received.
    var signatureParameters = Slice.empty

    package init() {
        components.reserveCapacity(32)
        parameters.reserveCapacity(64)
        decoded.reserveCapacity(4096)
    }

    /// A form parameter by its place in `decoded`.
    struct Parameter: BitwiseCopyable {
        var name: Slice
        var value: Slice
    }
}
