import CountersignWire

extension Notice {
    var isOfWrongCredentials: Bool { code == Refusal.Code.wrongCredentials.rawValue }

    /// Reads a refusal. Whatever is missing or of another kind is left out: that the status refuses is enough to know.
    package init(_ response: Response) {
        self.init(status: response.status)
        if let value = response.message.value(of: "retry-after") {
            retryAfter = Int(response.message.text(value)).flatMap { (0...86_400).contains($0) ? $0 : nil }
        }
        guard let document = try? JSONReader.read(response.message.body) else { return }
        func text(_ name: String) -> String? { document.root[name]?.string }
        func seconds(_ name: String) -> Int64? {
            document.root[name].flatMap { document.integer($0, in: 0...Int(UInt32.max)) }.map(Int64.init)
        }
        code = text("code") ?? ""
        title = text("title") ?? ""
        detail = text("detail") ?? ""
        instance = text("instance")
        time = seconds("time")
        reason = text("reason")
        at = seconds("at")
        by = text("by")
        updateURL = text("update_url")
    }
}
