import CountersignAuthority
import CountersignHTTP
import CountersignWire

extension Route {
    /// `GET pins/APP`: the app's signed pin manifest, as it was published. Anybody may ask, and believes its signature alone.
    static func pins(_ shelf: PinShelf) -> Route {
        Route(method: "GET", path: "/pins/*", admission: .anyone) { call in
            RouteAnswer(shelf.answer(of: call.parameter))
        }
    }
}

/// The manifests in memory. One that another process publishes is seen by the next request.
///
/// Safe to share: `held` is read and replaced under `lock` only.
final class PinShelf: @unchecked Sendable {
    /// How long others may keep an answer: a key that was lost is to be gone from clients soon.
    private static let cacheSeconds = 60

    private let deployment: Deployment
    private let lock = ReadWriteLock()
    private var held: (manifests: PinManifests, generation: UInt64)?

    init(_ deployment: Deployment) { self.deployment = deployment }

    func answer(of name: String) -> Answer {
        guard let app = AppName(name) else { return .notFound }
        do throws(Fault) {
            guard let text = try latest().text(of: app) else { return .notFound }
            return Answer(
                status: 200, type: "application/json",
                fields: [.init("Cache-Control", "public, max-age=\(PinShelf.cacheSeconds)")], body: Array(text.utf8))
        } catch {
            return .notReadable
        }
    }

    /// The generation is read before the store: a change that comes between the two is then loaded twice, never missed.
    private func latest() throws(Fault) -> PinManifests {
        let generation = deployment.generation.current
        if let held = lock.read({ held }), held.generation == generation { return held.manifests }
        let fresh = try deployment.pinManifests()
        lock.write { held = (fresh, generation) }
        return fresh
    }
}
