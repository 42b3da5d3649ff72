import CountersignTransport
import CountersignTrust
import CountersignWire

extension Profile {
    /// Whom to take for the server: who has a chain to an authority, and where pins are named, one of them in that chain; or a
    /// certificate that signs itself with a pinned key. With `--ca` alone, who has a chain to one of those. The host's name is asked in
    /// every case.
    func trust(for origin: Origin) throws(Fault) -> Trust {
        do {
            let policy: Trust.Policy
            if !pins.isEmpty {
                // One pin may stand alone here: who loses the key makes another profile, which an app cannot.
                policy = .pins(try PinSet(withoutBackup: pins))
            } else if let certificates {
                policy = try .certificates(try Profile.authorities(inFile: certificates))
            } else {
                return .system
            }
            return Trust([Trust.Rule(try Trust.HostPattern(origin.host.description), policy)], others: .refused)
        } catch {
            throw (error as? Fault) ?? Fault(.failed, "\(origin): \(error)")
        }
    }

    /// Where chains may end: with those of `--ca`, else with those of the machine.
    func authorities() throws(Fault) -> TransportOptions.Authorities {
        guard let certificates else { return .machine }
        return .instead(try Profile.authorities(inFile: certificates))
    }

    static func authorities(inFile path: String) throws(Fault) -> [Trust.Certificate] {
        let found: [Trust.Certificate]
        do {
            found = try Trust.Certificate.all(inPEM: try Console.readFile(path, limit: 1 << 20))
        } catch let problem as TrustProblem {
            throw Fault(.failed, "\(path): \(problem)")
        } catch {
            throw Fault(.failed, (error as? Fault)?.message ?? "\(path): \(error)")
        }
        guard !found.isEmpty else { throw Fault(.failed, "\(path): expected certificates in PEM") }
        return found
    }
}
