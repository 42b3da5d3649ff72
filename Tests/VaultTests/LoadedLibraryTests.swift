#if os(Linux)
    import CPAM
    import CountersignMemory
    import Testing

    @testable import CountersignVault

    /// Libraries that are loaded when they are first used: each name that cannot be loaded, and each function
    /// that a library lacks, is an error that says so, before any of its functions is called.
    @Suite struct LoadedLibraryTests {
        private func failure(_ files: KeyValuePairs<String, String>) -> String {
            let library = LoadedLibrary<cs_pam_functions>.load(files, by: cs_pam_functions_resolve)
            guard case .failure(let error) = library else {
                Issue.record("a library that lacks functions was loaded")
                return ""
            }
            return error.detail
        }

        @Test func aMissingLibraryIsNamedWithItsPackage() {
            let detail = failure([
                "libpam.so.0": "libpam0g", "libcountersign-none.so.7": "countersign-none7",
            ])
            #expect(
                detail
                    == "libcountersign-none.so.7: cannot open shared object file: No such file or directory; "
                    + "install countersign-none7")
        }

        @Test func aMissingFunctionIsNamedWithTheLibrariesThatWereSearched() {
            #expect(
                failure(["libc.so.6": "libc6", "libm.so.6": "libc6"])
                    == "libc.so.6, libm.so.6: no function pam_acct_mgmt; another version")
        }

        /// In the last of several libraries, too, as with GLib's, and the right function for each name.
        @Test func functionsAreFoundInAnyOfTheLibraries() throws {
            let pam = try LoadedLibrary<cs_pam_functions>.load(
                ["libc.so.6": "libc6", "libpam.so.0": "libpam0g"], by: cs_pam_functions_resolve
            ).get()
            let text = try #require(pam.pam_strerror(nil, PAM_AUTH_ERR))
            #expect(String(cString: text) == "Authentication failure")
        }

        @Test func aFailureIsTriedAgainAndALibraryIsLoadedOnce() throws {
            let tries = Locked(0)
            let library = LazyLibrary { () throws(VaultError) in
                let count = tries.with { tries in
                    tries += 1
                    return tries
                }
                guard count > 1 else { throw VaultError.failed("no descriptor is left") }
                return count
            }
            #expect(throws: VaultError.self) { try library.get() }
            #expect(try library.get() == 2)
            #expect(try library.get() == 2)
        }
    }
#endif
