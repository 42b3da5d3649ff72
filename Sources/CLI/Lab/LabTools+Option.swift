import CountersignLab
import CountersignWire
import Glibc

extension LabTools {
    /// `--with tshark,mitmproxy` or `--with mitmproxy=PATH`, PATH being of its `mitmdump`. A program that is not there is a ``Fault`` of what
    /// cannot be reached: the lab could do without it, but was told not to.
    init(words: [String], path searched: String?) throws(Fault) {
        self.init()
        for word in words.flatMap({ $0.split(separator: ",", omittingEmptySubsequences: false) }) {
            let parts = word.split(separator: "=", maxSplits: 1).map(String.init)
            switch (parts.first, parts.dropFirst().first) {
            case ("tshark", nil):
                _ = try LabTools.program("tshark", nil, searched)
                capture = .tshark
            case ("mitmproxy", let path): middle = .mitmproxy(try LabTools.program("mitmdump", path, searched))
            default: throw Fault(.usage, "--with `\(word)`: expected tshark, mitmproxy or mitmproxy=PATH")
            }
        }
    }

    private static func program(_ name: String, _ path: String?, _ searched: String?) throws(Fault) -> String {
        let folders = (searched ?? "").split(separator: ":")
        let places = path.map { [$0] } ?? folders.map { "\($0)/\(name)" }
        guard let found = places.first(where: { access($0, X_OK) == 0 }) else {
            throw Fault(.unreachable, "--with: no program \(path ?? "`\(name)` on the PATH")")
        }
        return found
    }
}
