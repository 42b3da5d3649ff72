#if canImport(os)
    import os

    extension CountersignLog {
        /// The system's log (Console, `log stream`): entries of `level` and above, readable there, since they
        /// hold no secret.
        public static func system(
            subsystem: String, category: String = "countersign", from level: Level = .info
        ) -> CountersignLog {
            let logger = Logger(subsystem: subsystem, category: category)
            return .handler(from: level) { entry in
                logger.log(level: OSLogType(entry.level), "\(entry.message, privacy: .public)")
            }
        }
    }

    extension OSLogType {
        fileprivate init(_ level: CountersignLog.Level) {
            switch level {
            case .debug: self = .debug
            case .info: self = .info
            case .notice: self = .default
            case .warning, .error: self = .error
            }
        }
    }
#endif
