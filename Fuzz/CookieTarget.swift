// Set-Cookie fields: for any field of a server, the cookies sent back are bounded, are one line, and match
// the cookie's host and path.
import Countersign
import CountersignTransport

/// The first line is the path of the request; each other line is a field.
@Sendable func fuzzCookies(_ bytes: Span<UInt8>) {
    var copy: [UInt8] = []
    bytes.withUnsafeBufferPointer { copy.append(contentsOf: $0) }
    let lines = copy.split(separator: 0x0A, maxSplits: 200, omittingEmptySubsequences: false)
    guard let first = lines.first else { return }
    let path = String(decoding: first, as: UTF8.self)
    let time: Int64 = 1_800_000_000
    let store = CookieStore()
    for isEncrypted in [true, false] {
        let setting = Cookie.Setting(
            host: "api.example.com", path: path, isEncrypted: isEncrypted, time: time)
        store.take(
            lines.dropFirst().map { HeaderField("Set-Cookie", bytes: Array($0)) }, setting: setting,
            unlessRemovedSince: 0)
        precondition(store.cookies.count <= 50)
        for cookie in store.cookies {
            precondition(!cookie.name.isEmpty && cookie.path.utf8.first == UInt8(ascii: "/"))
            precondition(cookie.expires.map { $0 > time } ?? true)
            precondition(
                !cookie.name.utf8.contains(UInt8(ascii: ";"))
                    && !cookie.value.utf8.contains(UInt8(ascii: ";")))
            let sent = store.field(path: cookie.path, isEncrypted: true, at: time)
            let expected = Array("; \(cookie.name)=\(cookie.value);".utf8)
            precondition(sent.map { Array("; \($0);".utf8).contains(expected) } == true)
        }
        let field = store.field(path: path, isEncrypted: false, at: time) ?? ""
        precondition(field.utf8.allSatisfy { $0 == 9 || ($0 >= 32 && $0 != 127) })
    }
}
