extension CountersignEvent {
    /// An address that a server named. It is printed without its query and fragment, which may hold anything.
    public struct Link: Sendable, Hashable {
        /// All of it, to be opened.
        public let url: String

        /// From its text.
        public init(_ url: String) { self.url = url }
    }
}

extension CountersignEvent.Link: CustomStringConvertible, CustomReflectable {
    /// The address, to its path's end.
    public var description: String { String(url.prefix { $0 != "?" && $0 != "#" }) }

    /// A dump shows no more than a log does.
    public var customMirror: Mirror { Mirror(self, children: ["url": description]) }
}
