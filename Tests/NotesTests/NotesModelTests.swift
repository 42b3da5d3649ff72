// The sample app's model, as an app tests its own: over a mock transport, and a vault in which an account is
// signed in. It proves what the black-box test cannot cause: a device that is offline, an answer that is
// lost.
import Countersign
import CountersignTestKit
import Testing
import Waiting

@testable import notes

@MainActor
@Suite(.timeLimit(.minutes(15))) struct NotesModelTests {
    /// Answers `/notes`; the authority's own routes are not found.
    private typealias Backend = @Sendable (RecordedRequest) async throws(TransportError) -> MockResponse

    private func model(_ backend: @escaping Backend) throws -> NotesModel {
        let vault = try FaultyVault().vault
        try vault.pretend("anna", isSignedInTo: "api.example.com", app: "notes")
        let key = try ReleaseKey(
            id: "r_test", secret: "VGhpcnR5LXR3byBieXRlcyBvZiBhIHJlbGVhc2Uga2V5IQ", app: "notes")
        var options = CountersignOptions()
        options.transport = .custom(MockTransport([], answer: backend))
        options.missingAuthorityKey = .leavesRefusalsUnverified
        return NotesModel(
            client: try CountersignClient(
                release: key, baseURL: "https://api.example.com", vault: .using(vault), trust: .system,
                options: options))
    }

    private func launch(_ backend: @escaping Backend) async throws -> NotesModel {
        let model = try model(backend)
        await model.retry()
        await until("the model is idle") { !model.state.isBusy }
        return model
    }

    @Test func aDeviceThatIsOfflineStaysSignedInAndCanSignOut() async throws {
        let model = try await launch { _ throws(TransportError) in
            throw TransportError(.offline, fate: .notSent)
        }
        #expect(model.state.screen == .home(account: "anna"))
        #expect(model.state.message == "You are offline.")
        await model.logOut()
        #expect(model.state == NotesState(screen: .login(notice: "You signed out.")))
    }

    @Test(arguments: [TransportError.Cause.hostNotFound, .connectionRefused, .timedOut(.connecting)])
    func whereTheServerCannotBeReachedOneCanSignOut(_ cause: TransportError.Cause) async throws {
        let model = try await launch { _ throws(TransportError) in throw TransportError(cause, fate: .notSent)
        }
        await model.logOut()
        #expect(model.state == NotesState(screen: .login(notice: "You signed out.")))
    }

    @Test func aSignOutThatMayHaveArrivedSignsOutHere() async throws {
        let model = try await launch { _ throws(TransportError) in
            throw TransportError(.connectionLost("reset"), fate: .outcomeUnknown)
        }
        await model.logOut()
        #expect(model.state.screen == .login(notice: "You signed out."))
    }

    @Test func aNoteWhoseAnswerIsLostIsNotCalledStored() async throws {
        let model = try await launch { request throws(TransportError) in
            guard request.method == "GET" else {
                throw TransportError(.connectionLost("reset"), fate: .outcomeUnknown)
            }
            return MockResponse(text: request.target == "/notes" ? #"[{"id":1,"text":"Milk"}]"# : "")
        }
        #expect(model.state.notes == [Note(id: 1, text: "Milk")])
        #expect(await !model.add("Bread"))
        #expect(model.state.message?.contains("not known whether this was done") == true)
        #expect(model.state.notes.count == 1 && !model.state.isBusy)
    }

    @Test func aBackendThatFailsIsNamed() async throws {
        let model = try await launch { _ throws(TransportError) in MockResponse(500, text: "") }
        #expect(model.state.message == "The server could not do this (status 500).")
        #expect(model.state.screen == .home(account: "anna"))
    }
}
