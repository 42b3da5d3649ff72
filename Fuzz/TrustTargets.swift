// An app's trust settings, and the certificates and responses of a server.
import CountersignSeal
import CountersignTrust
import CountersignWire

@testable import CountersignTransport

/// Hosts and patterns: an accepted one is written as text that parses again, and a pattern made of a host
/// matches it.
@Sendable func fuzzHosts(_ bytes: Span<UInt8>) {
    let text = bytes.text
    if let pattern = try? Trust.HostPattern(text) {
        precondition((try? Trust.HostPattern(pattern.description)) == pattern, "a pattern with two meanings")
    }
    guard let host = try? Trust.Host(text) else {
        precondition(
            (try? Trust.HostPattern(text)) == nil || text.first == "*", "a pattern for what is no host")
        return
    }
    precondition((try? Trust.Host(host.description)) == host, "a host with two spellings")
    for star in ["*.", "**."] {
        // Each may be too long, or an address, which has no labels.
        guard let wide = try? Trust.HostPattern(star + text), let below = try? Trust.Host("a." + text) else {
            continue
        }
        precondition(wide.matches(below) && wide.matches(host) == (star == "**."))
    }
    guard let own = try? Trust.HostPattern(text) else { preconditionFailure("a host that is no pattern") }
    precondition(own.matches(host))
}

/// A manifest and a signed manifest: every accepted rule is valid, and a signature by an unknown key does not
/// verify.
@Sendable func fuzzManifest(_ bytes: Span<UInt8>) {
    let text = bytes.withUnsafeBufferPointer { Array($0) }
    if let manifest = try? PinManifest(json: text) {
        precondition(manifest.version > 0 && !manifest.rules.isEmpty && !manifest.app.isEmpty)
    }
    if let signed = try? SignedManifest(json: text) {
        let nobody = [UInt8](repeating: 7, count: 32)
        precondition((try? signed.verified(by: [nobody])) == nil, "a signature of nobody's")
    }
}

/// A certificate: the parser reads all of it, and the pin of its key covers bytes of it.
@Sendable func fuzzCertificate(_ bytes: Span<UInt8>) {
    let der = bytes.withUnsafeBufferPointer { Array($0) }
    if let certificate = try? Trust.Certificate(der: der) {
        precondition(certificate.der == der && certificate.pin.digest.count == 32)
        precondition((try? Trust.Certificate(der: der + [0])) == nil, "something after a certificate")
        for case .dns(let name) in certificate.names { precondition(!name.contains("\0")) }
    }
    _ = try? Trust.Certificate.all(inPEM: der)
}

/// The head of a response to the client: an accepted one has a status and named fields, and no line break in
/// a value.
@Sendable func fuzzAnswerHead(_ bytes: Span<UInt8>) {
    guard let head = ResponseHeadParser.parse(bytes.withUnsafeBufferPointer { Array($0) }) else { return }
    precondition((100...599).contains(head.status))
    for field in head.fields {
        precondition(!field.name.isEmpty && !field.value.contains(0x0A))
        precondition(field.value.first != 0x20 && field.value.last != 0x09)
    }
}
