import ClientFakes
import CountersignSeal
import CountersignTestKit
import CountersignWire
import Testing

@testable import Countersign

/// A client requests a ticket for exactly one upload, and does not disclose it.
@Suite(.timeLimit(.minutes(15))) struct UploadTicketTests {
    @Test func asksForWhatIsSentLater() async throws {
        let world = try await World()
        let client = try await world.signedIn()
        let body = (0..<200_000).map { UInt8(truncatingIfNeeded: $0) }
        let path = try world.folder.write("film", body)
        var request = APIRequest(.put, "/films/7?part=1", body: .file(path: path))
        request.set("Content-Type", "video/mp4")
        let ticket = try await client.uploadTicket(for: request, expiresIn: .seconds(90))
        #expect(ticket.method == .put && ticket.url == "https://api.example.com/films/7?part=1")
        #expect(
            ticket.length == 200_000 && ticket.fields.map(\.name) == ["Content-Type", "Countersign-Ticket"])
        #expect(ticket.fields.text(of: "countersign-ticket")?.hasPrefix("u_") == true)
        let asked = try #require(await world.authority.uploadsAsked.last)
        let members = try JSONReader.read(asked).root
        let digest = SHA256.digest(body.span)
        #expect(members["content_digest"]?.string == "sha-256=:\(Base64.encode(digest.span, as: .standard)):")
        #expect(members["target"]?.string == "/films/7?part=1" && members["method"]?.string == "PUT")
        #expect(members["content_type"]?.string == "video/mp4")
        #expect(String(decoding: asked, as: UTF8.self).contains(#""length":200000"#))
        #expect(String(decoding: asked, as: UTF8.self).contains(#""expires_in":90"#))
    }

    @Test func emptyAndHeldBodiesHaveADigestToo() async throws {
        let world = try await World()
        let client = try await world.signedIn()
        for body in [APIRequest.Body.none, .bytes([]), .bytes([1, 2, 3])] {
            _ = try await client.uploadTicket(for: APIRequest(.post, "/a", body: body))
        }
        let digests = await world.authority.uploadsAsked.map { asked in
            (try? JSONReader.read(asked).root)?["content_digest"]?.string ?? ""
        }
        let empty = "sha-256=:47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=:"
        #expect(digests == [empty, empty, "sha-256=:A5BYxvLAy0ksUzsKTRTvd8wPeKvMztUofYShogEc+4E=:"])
    }

    @Test func aTicketIsNotShown() async throws {
        let client = try await World().signedIn()
        let ticket = try await client.uploadTicket(for: APIRequest(.put, "/a", body: .bytes([1])))
        var dumped = ""
        dump(ticket, to: &dumped)
        for shown in ["\(ticket)", String(reflecting: ticket), dumped] {
            #expect(!shown.contains("u_A"), "\(shown)")
        }
    }

    @Test func whatNoTicketCanBeForIsNotAskedFor() async throws {
        let world = try await World()
        let client = try await world.signedIn()
        var asApp = APIRequest(.put, "/a", body: .bytes([1]))
        asApp.caller = .app
        let requests = [
            APIRequest("/a"), APIRequest(.delete, "/a"), asApp,
            APIRequest(.put, "https://elsewhere.example/a"),
            APIRequest(.put, "/a", fields: [HeaderField("X-Own", value: "1")]),
            APIRequest(
                .put, "/a",
                fields: [
                    HeaderField("Content-Type", value: "a/b"), HeaderField("content-type", value: "a/c"),
                ]),
            APIRequest(.put, "/a", body: .file(path: "\(world.folder.path)/none")),
        ]
        for request in requests {
            await #expect(throws: CountersignError.self, "\(request.path)") {
                _ = try await client.uploadTicket(for: request)
            }
        }
        for time in [Duration.zero, .seconds(-1), .seconds(86_401)] {
            await #expect(throws: CountersignError.self, "\(time)") {
                _ = try await client.uploadTicket(for: APIRequest(.put, "/a"), expiresIn: time)
            }
        }
        #expect(await world.authority.uploadsAsked.isEmpty)
        let stranger = try await World().client()
        await #expect(throws: CountersignError.self) {
            _ = try await stranger.uploadTicket(for: APIRequest(.put, "/a"))
        }
    }
}
