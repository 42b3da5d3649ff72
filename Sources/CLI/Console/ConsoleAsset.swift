import CountersignHTTP
import CountersignSeal
import CountersignWire

/// A file of the console, which is part of the program.
struct ConsoleAsset: Sendable {
    let path: String
    private let type: String
    private let bytes: [UInt8]

    static let style = ConsoleAsset(
        "console.css", type: "text/css; charset=utf-8", bytes: PackageResources.console_css)
    static let script = ConsoleAsset(
        "console.js", type: "text/javascript; charset=utf-8", bytes: PackageResources.console_js)
    static let icon = ConsoleAsset(
        "icon.svg", type: "image/svg+xml", bytes: PackageResources.icon_svg)
    static let all = [style, script, icon]

    /// The path contains a digest of the file, so that browsers may keep it.
    private init(_ name: String, type: String, bytes: [UInt8]) {
        let digest = SHA256.digest(bytes.span)
        let beginning = (0..<6).map { digest[$0] }
        path = "/console/assets/\(Hex.encode(beginning.span))-\(name)"
        self.type = type
        self.bytes = bytes
    }

    var response: ServerResponse {
        ServerResponse(
            status: 200, type: type,
            fields: ConsoleFields.all + [
                ServerResponse.Field("Cache-Control", value: "private, max-age=31536000, immutable")
            ], body: bytes)
    }
}
