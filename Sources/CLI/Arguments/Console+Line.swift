import Glibc

extension Console {
    /// Puts `text` in the place of the last line of standard error, which is a terminal; cut to its width, for what runs over into a second
    /// line could not be taken away again. Of characters one column wide.
    func replaceLine(_ text: String) {
        var size = winsize()
        let width = ioctl(errors, UInt(TIOCGWINSZ), &size) == 0 && size.ws_col > 0 ? Int(size.ws_col) : 80
        hint("\r\u{1B}[2K\(text.prefix(width - 1))")
    }
}
