import CountersignAuthority
import CountersignTrust
import CountersignWire

/// The pin manifests that clients are handed.
extension Doctor {
    mutating func checkPins(of deployment: Deployment) {
        do throws(OperationalError) {
            let manifests = try deployment.pinManifests()
            for app in try deployment.store.apps().map(\.name) {
                guard let text = manifests.text(of: app) else { continue }
                let manifest = try? SignedManifest(json: Array(text.utf8)).unverified
                checkPinManifest(of: app, endingAt: manifest?.validity.upperBound)
            }
        } catch {
            add(.pins, verdict: .error, message: error.message, expected: "manifests that can be read")
        }
    }

    /// `end` is in whole Unix seconds; nil for a manifest that cannot be read.
    private mutating func checkPinManifest(of app: AppName, endingAt end: Int64?) {
        if let end, end > now {
            add(.pins, message: "app \(app): the pin manifest holds until \(CivilTime.rfc3339Text(end))")
            return
        }
        let state = end.map { "has expired at \(CivilTime.rfc3339Text($0))" } ?? "cannot be read"
        add(
            .pins, verdict: .warning, message: "app \(app): the pin manifest \(state)",
            expected:
                "one that is signed and published anew: apps that have it keep it, and others go by the "
                + "pins that they were built with", command: ownCommand("pins", "list"))
    }
}
