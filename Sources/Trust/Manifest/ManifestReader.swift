import CountersignWire

/// Reads a manifest's members; names each that is not as it should be.
struct ManifestReader {
    private let document: JSONDocument

    /// The outermost value.
    var root: JSON { document.root }

    /// At most ``SignedManifest/longest`` bytes, nested no deeper than `depth`.
    init(_ json: [UInt8], depth: Int) throws(ManifestProblem) {
        var bounds = JSONReader.Bounds()
        bounds.bytes = SignedManifest.longest
        bounds.depth = depth
        do {
            document = try JSONReader.read(json, bounds: bounds)
        } catch {
            throw .malformed("\(error)")
        }
    }

    /// An object with these members, one of each, and no others.
    func object(_ value: JSON, _ what: String, _ names: Set<String>) throws(ManifestProblem) -> JSON {
        guard let members = value.members else { throw .malformed("\(what): expected an object") }
        for member in members where !names.contains(member.name) {
            throw .malformed("\(what): `\(member.name.prefix(64))` is not known")
        }
        return value
    }

    func text(_ object: JSON, _ name: String) throws(ManifestProblem) -> String {
        guard let text = object[name]?.string, !text.isEmpty else { throw .malformed("\(name): expected a text") }
        return text
    }

    func integer(_ object: JSON, _ name: String, _ range: ClosedRange<Int>) throws(ManifestProblem) -> Int {
        guard let value = object[name], let number = document.integer(value, in: range) else {
            throw .malformed("\(name): expected a whole number from \(range.lowerBound) on")
        }
        return number
    }

    func list(_ object: JSON, _ name: String) throws(ManifestProblem) -> [JSON] {
        guard let elements = object[name]?.elements else { throw .malformed("\(name): expected a list") }
        return elements
    }

    func rule(_ value: JSON) throws(ManifestProblem) -> Trust.Rule {
        let host = try object(value, "a host", ["pattern", "mode", "pins", "backups"])
        let pattern = try text(host, "pattern")
        do throws(TrustProblem) {
            return try Trust.Rule.host(
                pattern, pins: try texts(host, "pins"), backups: try texts(host, "backups"), mode: try mode(host))
        } catch {
            throw .malformed("\(pattern): \(error)")
        }
    }

    /// Left out it is `enforce`.
    private func mode(_ host: JSON) throws(TrustProblem) -> Trust.Rule.Mode {
        guard let value = host["mode"] else { return .enforce }
        switch value.string {
        case "enforce": return .enforce
        case "report-only": return .reportOnly
        default: throw TrustProblem("mode: expected `enforce` or `report-only`")
        }
    }

    private func texts(_ host: JSON, _ name: String) throws(TrustProblem) -> [String] {
        guard let elements = host[name]?.elements else { throw TrustProblem("\(name): expected a list of pins") }
        var texts: [String] = []
        for element in elements {
            guard let text = element.string else { throw TrustProblem("\(name): expected a list of pins") }
            texts.append(text)
        }
        return texts
    }
}
