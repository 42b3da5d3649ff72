import CountersignSeal
import Glibc

// Every command, for the client's hold passwords and a session's root.
ProcessMemory.keepPrivate()
// The TPM's library would write its own lines on standard error; a user can set the variable to see them.
setenv("TSS2_LOG", "all+none", 0)
let status = Tool.run(Array(CommandLine.arguments.dropFirst())).rawValue
fflush(nil)
// Threads that still run must not meet libraries that are being taken down.
_exit(status)
