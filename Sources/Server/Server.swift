import CountersignWire

/// The authority and gateway as one process.
public enum Server {
    /// Serves until told to stop; returns once drained.
    package static func run(_ configuration: Configuration) throws(Fault) {
        throw Fault(.failed, "serve follows with the engine")
    }
}
