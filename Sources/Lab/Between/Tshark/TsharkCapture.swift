import Glibc

/// Wireshark's `tshark` at work on the loopback interface: eavesdropping by a program that is not ours, on the system's own packets.
final class TsharkCapture: Sendable {
    private let process: ChildProcess
    private let marker: PublicPort
    private let port: UInt16
    private let folder: String
    private var output: String { "\(folder)/packets" }

    /// Captures from now on what comes to and goes from `port`. Blocks its thread until it does, for fifteen seconds at most.
    init(port: UInt16) throws(StageFault) {
        folder = try Files.makeTemporaryFolder("tshark")
        self.port = port
        // Whoever connects here leaves a packet that says: what happened before is written down.
        marker = try PublicPort { close($0) }
        do { process = try TsharkCapture.start(folder, "tcp port \(port) or tcp port \(marker.number)") } catch {
            marker.stop()
            Files.removeFolder(folder)
            throw error
        }
        guard mark(within: 15) else {
            let said = (try? Files.read("\(folder)/complaints")).map { String(decoding: $0.suffix(300), as: UTF8.self) }
            end()
            throw StageFault(
                "tshark does not capture on lo; is it installed, and may this user capture? It says: \(said ?? "")")
        }
    }

    /// Its output goes to a file, which can be looked at any time; its own temporary files to the same folder.
    private static func start(_ folder: String, _ filter: String) throws(StageFault) -> ChildProcess {
        try ChildProcess(
            [
                "/bin/sh", "-c", "cd \"$HOME\" && exec tshark \"$@\" >packets", "tshark", "-i", "lo", "-n", "-l", "-f",
                filter, "-T",
                "fields", "-e", "tcp.stream", "-e", "tcp.srcport", "-e", "tcp.dstport", "-e", "tcp.seq_raw", "-e",
                "tcp.flags.syn", "-e", "tcp.payload",
            ],
            environment: ["PATH": "/usr/bin:/bin:/usr/sbin:/usr/local/bin", "TMPDIR": folder, "HOME": folder],
            errors: "\(folder)/complaints")
    }

    /// Ends it: what it captured. Empty where it has died on the way.
    func stop() -> Recording {
        let isWhole = mark(within: 5)
        process.end()
        let text = isWhole ? (try? Files.read(output)) ?? [] : []
        Files.removeFolder(folder)
        marker.stop()
        return Recording(TsharkPackets(text).conversations(with: port))
    }

    private func end() {
        process.end(SIGKILL)
        Files.removeFolder(folder)
        marker.stop()
    }

    /// Leaves marks, and waits until one was captured. What is captured is printed a while later, and what is sent before it captures never:
    /// hence more than one.
    private func mark(within seconds: Int) -> Bool {
        let before = (try? Files.read(output).count) ?? 0
        var marks: Set<UInt16> = []
        for round in 0..<(seconds * 20) {
            if round.isMultiple(of: 10) {
                guard let link = try? Link.open(to: "127.0.0.1", port: marker.number),
                    let own = Socket.port(link.descriptor)
                else { return false }
                marks.insert(own)
            }
            usleep(50_000)
            let printed = (try? Files.read(output)) ?? []
            if TsharkPackets(Array(printed.dropFirst(before))).all.contains(where: {
                $0.target == marker.number && marks.contains($0.source)
            }) {
                return true
            }
        }
        return false
    }
}
