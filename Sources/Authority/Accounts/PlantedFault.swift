#if DEBUG
    import Glibc

    /// A fault that a debug build can be told to have, so that script/enumeration can show that it would see it. No release
    /// build has it: the script looks.
    enum PlantedFault {
        /// Names without an account are answered at once.
        static let earlyReturn = getenv("COUNTERSIGN_PLANTED_EARLY_RETURN") != nil
    }
#endif
