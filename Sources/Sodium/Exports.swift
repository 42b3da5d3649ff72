// libsodium under whichever name it has here: on Apple's platforms that of swift-sodium's binary, elsewhere
// that of our module map over the system's. What it declares is the same.
#if canImport(Clibsodium)
    @_exported import Clibsodium
#else
    @_exported import CSodium
#endif
