import Glibc

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

    /// As somebody named them: `tshark`, `mitmproxy`, `mitmproxy=PATH`; several with commas, too. Without a path `mitmdump` is looked for in
    /// the folders of `path`, as a shell does.
    package init(_ words: [String], path: String) throws(StageFault) {
        for word in words.flatMap({ $0.split(separator: ",", omittingEmptySubsequences: false) }) {
            if word == "tshark" {
                capture = .tshark
            } else if word == "mitmproxy" {
                let places = path.split(separator: ":").map { "\($0)/mitmdump" }
                guard let place = places.first(where: { access($0, X_OK) == 0 }) else {
                    throw StageFault("no `mitmdump` in PATH; say where it is with mitmproxy=PATH")
                }
                middle = .mitmproxy(place)
            } else if word.hasPrefix("mitmproxy="), word.count > "mitmproxy=".count {
                middle = .mitmproxy(String(word.dropFirst("mitmproxy=".count)))
            } else {
                throw StageFault("`\(word)`: expected tshark, mitmproxy or mitmproxy=PATH")
            }
        }
    }
}

extension LabTools.Capture: CustomStringConvertible {
    package var description: String { self == .tshark ? "tshark" : "a tap of the lab's" }
}

extension LabTools.Middle: CustomStringConvertible {
    package var description: String { self == .own ? "a proxy of the lab's" : "mitmproxy" }
}
