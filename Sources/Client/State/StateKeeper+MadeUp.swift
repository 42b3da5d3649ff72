import CountersignHandshake
import CountersignSeal
import CountersignWire

extension StateKeeper {
    /// As a login would leave it, with a session that no server knows and that cannot be renewed: for tests of apps.
    package func makeUpSession(of account: AccountName, app: String?, expires: Int64) throws(ClientProblem) {
        let random = SystemRandom()
        let bytes = random.bytes(SessionID.count)
        guard let id = SessionID(bytes.span), let name = Device.Name("made up") else { throw .machine("no session id") }
        let epoch = DeviceSession.Epoch(
            number: 0, root: SessionRoot(secret: random.secret(SessionRoot.count)), expires: expires)
        let login = SignedIn(
            account: account, deviceClass: .other, deviceName: name, slots: "",
            session: .device(DeviceSession(id: id, current: epoch, idle: expires)))
        try change { state in
            state.app = app
            state.begin(login)
            return .write(())
        }
    }
}
