import CountersignSeal
import Glibc

// Every command, for the client's hold passwords and a session's root.
ProcessMemory.keepPrivate()
exit(Tool.run(Array(CommandLine.arguments.dropFirst())).rawValue)
