import CountersignWire

/// What a run has found, and when: what tables, JSON and pages are made of.
package struct LabReport: Sendable {
    package var matrix: Matrix
    /// When the run began, Unix seconds.
    package var began: Int64
    /// How long it took.
    package var seconds: Double
    /// Of the program.
    package var version: String

    package init(matrix: Matrix, began: Int64, seconds: Double, version: String) {
        self.matrix = matrix
        self.began = began
        self.seconds = seconds
        self.version = version
    }

    /// `3 min 12 s`, `4.2 s`.
    var duration: String {
        let tenths = Int((seconds * 10).rounded())
        if tenths < 600 { return "\(tenths / 10).\(tenths % 10) s" }
        let whole = (tenths + 5) / 10
        return "\(whole / 60) min \(whole % 60) s"
    }
}
