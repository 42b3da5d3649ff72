import CountersignSQL
import Testing

/// Which addresses of databases are accepted, and that none gives up TLS on the way to another machine.
@Suite struct AddressTests {
    @Test(
        "an address is read, and written without its password",
        arguments: [
            ("postgres://db.example/shop", "postgres://db.example/shop?sslmode=verify-full"),
            (
                "postgresql://u:p%40ss@db.example:5433/shop?sslrootcert=/ca.pem",
                "postgres://u:***@db.example:5433/shop?sslmode=verify-full&sslrootcert=/ca.pem"
            ),
            ("postgres://u@[2001:db8::1]/shop", "postgres://u@[2001:db8::1]/shop?sslmode=verify-full"),
            ("postgres://u@%2Fvar%2Frun/shop", "postgres://u@%2Fvar%2Frun/shop"),
            ("postgres://localhost/shop", "postgres://localhost/shop?sslmode=prefer"),
            ("postgres://127.0.0.2/shop?sslmode=disable", "postgres://127.0.0.2/shop?sslmode=disable"),
            ("postgres://[::1]:1/shop?sslmode=verify-full", "postgres://[::1]:1/shop?sslmode=verify-full"),
        ])
    func accepted(_ row: (text: String, shown: String)) {
        let address = PostgreSQLAddress(url: row.text)
        #expect(address?.text == row.shown)
        #expect(address?.name.contains("p@ss") == false && address?.name.contains("***") == false)
    }

    @Test(
        "what is incomplete, unknown or unprotected is refused",
        arguments: [
            "", "postgres:", "postgres://", "postgres:///shop", "postgres://db.example",
            "postgres://db.example/", "mysql://db.example/shop", "postgres://db.example:0/shop",
            "postgres://db.example:x/shop", "postgres://db.example:65536/shop", "postgres://a,b/shop",
            "postgres://@db.example/shop", "postgres://u:@db.example/shop",
            "postgres://u:%zz@db.example/shop", "postgres://u:%+f@h/shop", "postgres://u:%00@h/shop",
            "postgres://db.example/shop?sslmode=disable", "postgres://db.example/shop?sslmode=prefer",
            "postgres://db.example/shop?sslmode=require", "postgres://db.example/shop?sslmode=verify-ca",
            "postgres://127.0.0.1.example/shop?sslmode=disable", "postgres://db.example/shop?options=-c",
            "postgres://db.example/shop?sslrootcert=", "postgres://db.example/shop?sslcert=a&sslcert=b",
            "postgres://db.example/shop?host=other", "postgres://db.example/a b", "postgres://[::1/shop",
        ])
    func refused(_ text: String) {
        #expect(PostgreSQLAddress(url: text) == nil)
    }

    @Test func passwordsAreCompared() {
        func address(_ password: String) -> PostgreSQLAddress? {
            PostgreSQLAddress(url: "postgres://u:\(password)@db.example/shop")
        }
        #expect(address("one") == address("one"))
        #expect(address("one") != address("two"))
    }
}
