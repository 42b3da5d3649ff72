import CountersignWire
import Glibc

/// The tools for listening and interception: the lab's own, or well-known independent programs.
package struct LabTools: Sendable, Equatable {
    /// The tool that captures bytes.
    package enum Capture: Sendable, Equatable {
        case own
        /// Wireshark's `tshark` on the loopback interface. Needs the permission to capture.
        case tshark
    }

    /// The tool that intercepts connections.
    package enum Middle: Sendable, Equatable {
        case own
        /// mitmproxy's `mitmdump`, at this path.
        case mitmproxy(String)
    }

    package var capture = Capture.own
    package var middle = Middle.own

    package init() {}

    /// Parses tool names: `tshark`, `mitmproxy`, `mitmproxy=PATH`; commas separate several. Programs without
    /// a path are searched in the folders of `path`, as in a shell. Throws a usage error for an unknown name,
    /// and `unreachable` for a program that does not exist or cannot be executed.
    package init(_ words: [String], path: String) throws(OperationalError) {
        for word in words.flatMap({ $0.split(separator: ",", omittingEmptySubsequences: false) }) {
            if word == "tshark" {
                _ = try LabTools.find("tshark", in: path)
                capture = .tshark
            } else if word == "mitmproxy" {
                middle = .mitmproxy(try LabTools.find("mitmdump", in: path))
            } else if word.hasPrefix("mitmproxy="), word.count > "mitmproxy=".count {
                let place = String(word.dropFirst("mitmproxy=".count))
                guard access(place, X_OK) == 0 else {
                    throw OperationalError(
                        .unreachable, message: "\(place) is no program that can be run")
                }
                middle = .mitmproxy(place)
            } else {
                throw OperationalError(
                    .usage, message: "`\(word)`: expected tshark, mitmproxy or mitmproxy=PATH")
            }
        }
    }

    private static func find(_ program: String, in path: String) throws(OperationalError) -> String {
        let places = path.split(separator: ":").map { "\($0)/\(program)" }
        guard let place = places.first(where: { access($0, X_OK) == 0 }) else {
            throw OperationalError(.unreachable, message: "no `\(program)` in PATH")
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
