/// With what the attacker listens and stands in the middle: the lab's own means, or programs that people know and trust more than ours.
package struct LabTools: Sendable, Equatable {
    /// What hears bytes.
    package enum Capture: Sendable, Equatable {
        case own
        /// Wireshark's, on the loopback interface. Needs the right to capture.
        case tshark
    }

    /// Who takes connections apart.
    package enum Middle: Sendable, Equatable {
        case own
        /// mitmproxy's `mitmdump`, at this path.
        case mitmproxy(String)
    }

    package var capture = Capture.own
    package var middle = Middle.own

    package init() {}
}
