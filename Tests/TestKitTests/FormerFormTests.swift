import CountersignTestKit
import CountersignTransport
import CountersignTrust
import CountersignVault
import Testing

/// Code that was written for the former names and argument labels still compiles, with a warning, and means
/// the same.
@Suite struct FormerFormTests {
    /// A call by a protocol causes no warning here.
    private let forms: any FormerForms = DeprecatedForms()

    @Test func theFormerFormsMeanTheSame() async throws {
        #expect(forms.field == HeaderField("a", value: "b"))
        #expect(forms.error == TransportError(.offline, fate: .notSent))
        #expect(try forms.request().target == Array("/a".utf8))
        #expect(try forms.request().origin.port == 8443)
        #expect(forms.longest == ItemName.longest)
        #expect(try await forms.answer() == 201)
    }

    /// A trailing closure selects the present form, without a warning.
    @Test func aTrailingClosureIsNotAmbiguous() async throws {
        let transport = MockTransport { _ throws(TransportError) in MockResponse(204) }
        let body = ReplayableBody(.unknown) { AsyncStream<[UInt8]> { $0.finish() } }
        let request = try OutgoingRequest(
            "PUT", origin: Origin(.tls, host: Trust.Host("example.com")), target: "/a",
            body: .replayable(body))
        #expect(try await transport.send(request).status == 204)
    }
}

private protocol FormerForms {
    var field: HeaderField { get }
    var error: TransportError { get }
    var longest: Int { get }
    func request() throws -> OutgoingRequest
    func answer() async throws -> Int
}

private struct DeprecatedForms: FormerForms {
    @available(*, deprecated) var field: HeaderField { HTTPField("a", "b") }

    @available(*, deprecated) var error: TransportError { TransportError(.offline, .notSent) }

    @available(*, deprecated) var longest: Int { ItemName.most }

    @available(*, deprecated) func request() throws -> OutgoingRequest {
        let origin = Origin(.tls, try Trust.Host("example.com"), port: 8443)
        return OutgoingRequest("GET", origin, "/a", fields: [field])
    }

    @available(*, deprecated) func answer() async throws -> Int {
        let make: @Sendable () -> AsyncStream<[UInt8]> = { AsyncStream { $0.finish() } }
        let answer: @Sendable (SeenRequest) async throws(TransportError) -> MockAnswer = {
            _ throws(TransportError) in MockAnswer(201)
        }
        let transport = MockTransport([], answer)
        let origin = Origin(.tls, try Trust.Host("example.com"))
        for body in [
            RequestBody.replayable(ReplayableBody(.unknown, make)), .once(OnceBody(.unknown, make())),
        ] {
            let request = OutgoingRequest("PUT", origin, "/a", body: body)
            guard try await transport.send(request).status == 201 else { return 0 }
        }
        return 201
    }
}
