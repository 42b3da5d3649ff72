import Countersign
import CountersignWire

/// What a test wants done.
struct LegacyOrder {
    private let root: JSON

    init(_ root: JSON) { self.root = root }

    subscript(name: String) -> String { root[name]?.string ?? "" }

    var request: APIRequest {
        let body = self["body"]
        var request = APIRequest(
            APIMethod(self["method"].isEmpty ? "GET" : self["method"]), self["path"],
            body: body.isEmpty ? .none : .bytes(Array(body.utf8)))
        if !self["file"].isEmpty { request.body = .file(path: self["file"]) }
        if !self["type"].isEmpty { request.set("Content-Type", self["type"]) }
        if self["caller"] == "app" { request.caller = .app }
        return request
    }

    /// How many requests go out at once.
    var count: Int { Int(self["count"]) ?? 1 }
}
