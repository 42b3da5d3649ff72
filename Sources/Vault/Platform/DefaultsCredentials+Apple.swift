#if canImport(Security)
    import CountersignSeal
    import Foundation

    /// What an older version left in UserDefaults. Source: Foundation/NSUserDefaults.h.
    public struct DefaultsCredentials: RememberedCredentials {
        private let suite: String?
        private let service: String
        private let spelling: DefaultsRemains.Spelling

        /// `suite` is nil for the program's own defaults; `service` is where the vault is to keep what is found.
        public init(suite: String? = nil, service: String, spelled spelling: DefaultsRemains.Spelling) {
            self.suite = suite
            self.service = service
            self.spelling = spelling
        }

        /// Of the keys of ``DefaultsRemains``.
        public func read() -> Reading<[RememberedCredential]> {
            guard let defaults = UserDefaults(suiteName: suite) else { return .failed("no defaults of that name") }
            let remains = DefaultsRemains(
                userName: defaults.string(forKey: DefaultsRemains.userNameKey),
                remembers: defaults.object(forKey: DefaultsRemains.switchKey).map { _ in
                    defaults.bool(forKey: DefaultsRemains.switchKey) ? .on : .off
                },
                password: defaults.string(forKey: DefaultsRemains.passwordKey).map {
                    Secret(copying: Array($0.utf8).span)
                })
            do {
                return .value(try remains.remains(spelled: spelling, service: service))
            } catch {
                return Reading(error)
            }
        }

        /// Removes the key, and waits until that is kept.
        public func erase(_ remembered: RememberedCredential) throws(VaultProblem) {
            guard let defaults = UserDefaults(suiteName: suite) else { throw .failed("no defaults of that name") }
            defaults.removeObject(forKey: remembered.key)
            guard defaults.synchronize() else { throw .failed("\(remembered.key): cannot be erased") }
        }
    }
#endif
