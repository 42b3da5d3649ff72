#if os(Linux)
    import CountersignSodium
    import Glibc

    /// The memory of this process, which contains secrets while it uses them.
    package enum ProcessMemory {
        /// Hides the memory from all but the system's administrators: core files, core handlers, crash
        /// reports and other processes of the same user show none of it. Call it once, before there are
        /// secrets.
        ///
        /// The limit on core files does not apply to a handler that the kernel pipes cores to; making the
        /// process not dumpable does. Swift's crash reports print the memory that registers point to on
        /// standard error, and while they are enabled a signal sent by another process does not end this one.
        /// Therefore the default signal actions are restored, unless the operator requests crash reports by
        /// SWIFT_BACKTRACE.
        ///
        /// Source: prctl(2), PR_SET_DUMPABLE; core(5); the Swift runtime's Backtracing.rst.
        package static func keepPrivate() {
            var none = rlimit(rlim_cur: 0, rlim_max: 0)
            setrlimit(__rlimit_resource_t(RLIMIT_CORE.rawValue), &none)
            _ = cs_prctl_set_dumpable(0)
            guard getenv("SWIFT_BACKTRACE") == nil else { return }
            for crash in [SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGQUIT, SIGSEGV, SIGTRAP] {
                signal(crash, SIG_DFL)
            }
        }
    }
#endif
