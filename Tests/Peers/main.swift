// The programs that tests in Tests/Interop and Tests/Faults drive, in one: `test-peers NAME …`. Each file named
// …Peer.swift says what its peer does. Never shipped.
import Glibc

let words = Array(CommandLine.arguments.dropFirst())
let rest = Array(words.dropFirst())
switch words.first {
case "opaque": try OpaquePeer.run()
case "vault": await VaultPeer.run(rest)
case "legacy": try await LegacyPeer.run(PeerOptions(rest))
case "transport": try await TransportPeer.run(PeerOptions(rest))
case "conformance": try await ConformancePeer.run()
default:
    Line.error("usage: test-peers opaque|vault|legacy|transport|conformance …")
    exit(2)
}
