extension Migrations {
    /// That old clients renew their tokens is for the app to say from here on; before, it was the default.
    /// Apps whose clients have had tokens of ours keep what they had.
    static let m010 = """
        INSERT OR IGNORE INTO app_setting (app, name, text)
            SELECT app, 'legacy-renewal', 'on' FROM app_setting
            WHERE name = 'legacy-session' AND text = 'authority';
        """
}
