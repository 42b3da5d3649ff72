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

    /// What is wrong with the tools that somebody named.
    package enum Problem: Error, Sendable, Equatable {
        /// There is no such word.
        case unknown(String)
        /// The program is not there, or may not be run.
        case missing(String)
    }

    /// As somebody named them: `tshark`, `mitmproxy`, `mitmproxy=PATH`; several with commas, too. Without a path programs are looked for in
    /// the folders of `path`, as a shell does.
    package init(_ words: [String], path: String) throws(Problem) {
        for word in words.flatMap({ $0.split(separator: ",", omittingEmptySubsequences: false) }) {
            if word == "tshark" {
                _ = try LabTools.find("tshark", in: path)
                capture = .tshark
            } else if word == "mitmproxy" {
                middle = .mitmproxy(try LabTools.find("mitmdump", in: path))
            } else if word.hasPrefix("mitmproxy="), word.count > "mitmproxy=".count {
                let place = String(word.dropFirst("mitmproxy=".count))
                guard access(place, X_OK) == 0 else { throw .missing("\(place) is no program that can be run") }
                middle = .mitmproxy(place)
            } else {
                throw .unknown("`\(word)`: expected tshark, mitmproxy or mitmproxy=PATH")
            }
        }
    }

    private static func find(_ program: String, in path: String) throws(Problem) -> String {
        let places = path.split(separator: ":").map { "\($0)/\(program)" }
        guard let place = places.first(where: { access($0, X_OK) == 0 }) else {
            throw .missing("no `\(program)` in PATH")
        }
        return place
    }
}

extension LabTools.Capture: CustomStringConvertible {
    package var description: String { self == .tshark ? "tshark" : "a tap of the lab's" }
}

extension LabTools.Middle: CustomStringConvertible {
    package var description: String { self == .own ? "a proxy of the lab's" : "mitmproxy" }
}
