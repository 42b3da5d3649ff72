import Glibc

/// What the kernel says of this process, under the names that Prometheus' client libraries use.
struct ProcessFigures {
    /// User and system time, in seconds.
    let cpu: Double
    /// Bytes; nil where `/proc` does not say.
    let resident: Int?
    let virtual: Int?
    /// Open file descriptors.
    let descriptors: Int?
    let mostDescriptors: UInt64

    init() {
        var use = rusage()
        getrusage(__rusage_who_t(RUSAGE_SELF.rawValue), &use)
        func seconds(_ time: timeval) -> Double { Double(time.tv_sec) + Double(time.tv_usec) / 1_000_000 }
        cpu = seconds(use.ru_utime) + seconds(use.ru_stime)
        let pages = ProcessFigures.text(of: "/proc/self/statm").split(separator: " ").prefix(2).map {
            Int($0)
        }
        let size = Int(sysconf(Int32(_SC_PAGESIZE)))
        virtual = pages.first.flatMap { $0.map { $0 * size } }
        resident = pages.count == 2 ? pages[1].map { $0 * size } : nil
        descriptors = ProcessFigures.openDescriptors()
        var limit = rlimit()
        getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
        mostDescriptors = UInt64(limit.rlim_cur)
    }

    private static func text(of path: StaticString) -> String {
        let descriptor = open("\(path)", O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { return "" }
        defer { close(descriptor) }
        var bytes = [UInt8](repeating: 0, count: 256)
        let count = read(descriptor, &bytes, bytes.count)
        return String(decoding: bytes.prefix(max(count, 0)), as: UTF8.self)
    }

    private static func openDescriptors() -> Int? {
        guard let folder = opendir("/proc/self/fd") else { return nil }
        defer { closedir(folder) }
        var count = 0
        while let entry = readdir(folder) {
            if entry.pointee.d_name.0 != CChar(UInt8(ascii: ".")) { count += 1 }
        }
        // Without the one that reads the folder.
        return max(count - 1, 0)
    }

    func add(to page: inout PrometheusExposition) {
        page.add(
            "process_cpu_seconds_total", kind: .counter, help: "User and system CPU time, in seconds.",
            value: cpu)
        if let resident {
            page.add(
                "process_resident_memory_bytes", kind: .gauge, help: "Resident memory, in bytes.",
                value: resident)
        }
        if let virtual {
            page.add(
                "process_virtual_memory_bytes", kind: .gauge, help: "Virtual memory, in bytes.",
                value: virtual)
        }
        if let descriptors {
            page.add(
                "process_open_fds", kind: .gauge, help: "Open file descriptors.", value: descriptors)
        }
        page.add(
            "process_max_fds", kind: .gauge, help: "The limit on open file descriptors.",
            value: mostDescriptors)
    }
}
