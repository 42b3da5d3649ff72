import CountersignReplay
import Testing

/// Which addresses are accepted, and that none sends requests over the network without TLS.
@Suite struct RedisAddressTests {
    @Test(
        "an address is read, and written without its password",
        arguments: [
            ("redis://localhost", "redis://localhost:6379"),
            ("redis://127.0.0.1:1/3", "redis://127.0.0.1:1/3"),
            ("redis://[::1]:7000/", ""), ("redis://[::1]:7000", "redis://[::1]:7000"),
            ("redis://:p%40ss@127.0.0.2", "redis://:***@127.0.0.2:6379"),
            (
                "rediss://cs:p%40ss@a.example,b.example:7000/1",
                "rediss://cs:***@a.example:6379,b.example:7000/1"
            ),
            (
                "rediss://cs@r.example?passfile=/p&cafile=/ca.pem",
                "rediss://cs@r.example:6379?cafile=/ca.pem&passfile=/p"
            ),
        ])
    func accepted(_ row: (text: String, shown: String)) {
        let address = RedisAddress(url: row.text)
        #expect((address?.text ?? "") == row.shown)
        #expect(address?.text.contains("p@ss") != true)
    }

    @Test(
        "what is incomplete, unknown or unprotected is refused",
        arguments: [
            "", "redis:", "redis://", "redis://r.example", "redis://127.0.0.1,r.example",
            "redis://127.0.0.1.example", "redis://10.0.0.1", "redis://:p@r.example", "redis://h:0",
            "rediss://h:65536", "rediss://h:x", "rediss://h:+1", "rediss://u@h", "rediss://u:@h",
            "rediss://u:%00@h", "rediss://u:%+f@h", "rediss://u:p@h?passfile=/p", "rediss://h/x",
            "rediss://h/-1", "rediss://h/10000", "rediss://h,h", "rediss://h,", "rediss://h?x=1",
            "rediss://h?passfile=", "redis://localhost?cafile=/ca", "rediss://a b", "rediss://h#1",
            "http://h", "rediss://[::1", "rediss://a,b,c,d,e,f,g,h,i",
        ])
    func refused(_ text: String) {
        #expect(RedisAddress(url: text) == nil)
    }
}
