import CountersignTransport
import CountersignTrust
import CountersignWire

/// Hints in responses that this version will be retired. No more than a hint: any party in between can add it
/// to a backend's response.
final class UpdateHints: Sendable {
    private let events: Broadcast<CountersignEvent>
    /// The last hint, so that the app is told once, and not for each response.
    private let last = Locked<[UInt8]>([])

    /// The most bytes of the field that are parsed.
    private static let longest = 2048

    init(_ events: Broadcast<CountersignEvent>) { self.events = events }

    func note(_ fields: [HeaderField]) {
        guard let field = fields.first(where: { $0.isNamed("countersign-update") }),
            field.value.count <= UpdateHints.longest
        else { return }
        let isNew = last.with { last in
            guard last != field.value else { return false }
            last = field.value
            return true
        }
        guard isNew, let hint = try? UpdateHints.read(field.value) else { return }
        events.tell(.updateAvailable(url: hint.url.map(CountersignEvent.Link.init), at: hint.at))
    }

    /// `stage=warn, at=…, link="…"`. Source: docs/protocol.md, "Retiring a version".
    static func read(_ value: [UInt8]) throws -> (url: String?, at: Int64?) {
        var (url, at): (String?, Int64?) = (nil, nil)
        var reader = StructuredField(value.span)
        while let key = try reader.nextMember() {
            let name = String(decoding: value[key.range], as: UTF8.self)
            guard reader.takeEquals() else {
                try reader.skipParameters()
                continue
            }
            switch (name, try reader.bareItem()) {
            case ("at", .integer(let time)): at = time
            case ("link", .string(let text)): url = String(decoding: value[text.range], as: UTF8.self)
            default: break
            }
            try reader.skipParameters()
        }
        return (url, at)
    }
}
