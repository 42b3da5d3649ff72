#if os(Linux)
    import CountersignSodium
    import Glibc

    /// The memory of this process, which holds secrets for as long as it works with them.
    package enum ProcessMemory {
        /// Keeps it from everybody but the system's administrators: no core file, no handler of cores, no other process of the
        /// same user, and no crash report shows any of it. Call once, before there are secrets.
        ///
        /// The limit on core files does not reach a handler that the kernel pipes cores to; that the process cannot be dumped does.
        /// Swift's crash reports print what registers point to, into whatever takes the standard error, and a signal that was sent by
        /// somebody does not end the process then: so crashes end it as they do in C, unless whoever starts it asks for reports
        /// by SWIFT_BACKTRACE.
        ///
        /// Source: prctl(2), PR_SET_DUMPABLE; core(5); the Swift runtime's Backtracing.rst.
        package static func keepPrivate() {
            var none = rlimit(rlim_cur: 0, rlim_max: 0)
            setrlimit(__rlimit_resource_t(RLIMIT_CORE.rawValue), &none)
            _ = cs_prctl_set_dumpable(0)
            guard getenv("SWIFT_BACKTRACE") == nil else { return }
            for crash in [SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGQUIT, SIGSEGV, SIGTRAP] { signal(crash, SIG_DFL) }
        }
    }
#endif
