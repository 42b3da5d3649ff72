#if os(Linux)
    import CPAM
    import CountersignSeal
    import Glibc

    /// The password of a person's account on this machine, checked as its administrator has it checked.
    /// Source: pam(3).
    package struct PAMPasswordCheck: PasswordCheck {
        private static let library = LazyLibrary { () throws(VaultError) in
            try LoadedLibrary<cs_pam_functions>.load(
                ["libpam.so.0": "libpam0g"], by: cs_pam_functions_resolve
            ).get()
        }

        private let service: String
        private let user: String
        /// Where the services' files are; nil for the system's own.
        private let folder: String?

        package init(service: String = "login", user: String, folder: String? = nil) {
            self.service = service
            self.user = user
            self.folder = folder
        }

        package func verify(_ ask: @escaping @Sendable () -> Secret?) -> PasswordVerdict {
            let pam: LoadedLibrary<cs_pam_functions>
            do throws(VaultError) {
                pam = try PAMPasswordCheck.library.get()
            } catch {
                return .unavailable("PAM: \(error.detail)")
            }
            let conversation = PAMConversation(ask)
            return withExtendedLifetime(conversation) {
                var callbacks = pam_conv(
                    conv: PAMConversation.answer,
                    appdata_ptr: Unmanaged.passUnretained(conversation).toOpaque())
                var handle: OpaquePointer?
                let begun =
                    if let folder { pam.pam_start_confdir(service, user, &callbacks, folder, &handle) } else {
                        pam.pam_start(service, user, &callbacks, &handle)
                    }
                guard begun == PAM_SUCCESS, let handle else { return .unavailable("PAM: status \(begun)") }
                let flags = Int32(PAM_DISALLOW_NULL_AUTHTOK)
                let proven = pam.pam_authenticate(handle, flags)
                let allowed = proven == PAM_SUCCESS ? pam.pam_acct_mgmt(handle, flags) : proven
                let detail =
                    pam.pam_strerror(handle, allowed).map { String(cString: $0) } ?? "status \(allowed)"
                _ = pam.pam_end(handle, allowed)
                // The right password to an account that may not be used: nothing that a second try would
                // change.
                if proven == PAM_SUCCESS, allowed != PAM_SUCCESS { return .unavailable("PAM: \(detail)") }
                return conversation.verdict(status: allowed, detail: detail)
            }
        }
    }

    /// Answers PAM's questions: a hidden one with the password, which is asked for once, and no other.
    private final class PAMConversation {
        private let ask: @Sendable () -> Secret?
        private var typed: Secret?
        private var isGivenUp = false

        init(_ ask: @escaping @Sendable () -> Secret?) { self.ask = ask }

        func verdict(status: Int32, detail: String) -> PasswordVerdict {
            if isGivenUp { return .givenUp }
            switch status {
            case PAM_SUCCESS:
                // A stack that lets people in unasked (`pam_permit`) proves nothing.
                guard let typed else { return .unavailable("PAM asked for no password") }
                return .accepted(typed)
            case PAM_AUTH_ERR, PAM_USER_UNKNOWN: return .refused("PAM: \(detail)")
            default: return .unavailable("PAM: \(detail)")
            }
        }

        private func password() -> Secret? {
            if typed == nil { typed = ask() }
            isGivenUp = typed == nil
            return typed
        }

        static let answer:
            @convention(c) (
                Int32, UnsafeMutablePointer<UnsafePointer<pam_message>?>?,
                UnsafeMutablePointer<UnsafeMutablePointer<pam_response>?>?,
                UnsafeMutableRawPointer?
            ) -> Int32 = { count, messages, answers, data in
                guard let messages, let answers, let data, count > 0,
                    let made = calloc(Int(count), MemoryLayout<pam_response>.stride)
                else { return PAM_CONV_ERR }
                let conversation = Unmanaged<PAMConversation>.fromOpaque(data).takeUnretainedValue()
                let responses = made.assumingMemoryBound(to: pam_response.self)
                for index in 0..<Int(count) {
                    switch messages[index]?.pointee.msg_style {
                    case PAM_PROMPT_ECHO_OFF:
                        guard let password = conversation.password() else {
                            free(made)
                            return PAM_CONV_ERR
                        }
                        // PAM wipes it and frees it.
                        responses[index].resp = password.withExposedBytes { bytes in
                            bytes.withUnsafeBytes { bytes in
                                bytes.baseAddress.map {
                                    strndup($0.assumingMemoryBound(to: CChar.self), bytes.count)
                                }
                                    ?? strdup("")
                            }
                        }
                    case PAM_ERROR_MSG, PAM_TEXT_INFO: continue
                    default:
                        free(made)
                        return PAM_CONV_ERR
                    }
                }
                answers.pointee = responses
                return PAM_SUCCESS
            }
    }
#endif
