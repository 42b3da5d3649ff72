import Testing

@testable import CountersignCLI

/// What the admin API runs beside other commands only reads.
@Suite struct AdminAPITests {
    @Test func slowOperationsOnlyRead() {
        let slow = APIOperation.all.filter { AdminAPIService.isSlow($0.command) }
        #expect(Set(slow.map(\.id)) == ["verifyAudit", "exportAccount"])
        #expect(slow.allSatisfy { $0.method == .get })
    }
}
