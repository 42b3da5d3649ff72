extension Migrations {
    /// Where a session's device says that it keeps its keys: `software`, `tpm` or `secure-enclave`; null
    /// where it has not said.
    static let m011 = """
        ALTER TABLE session ADD COLUMN key_storage TEXT;
        """
}
